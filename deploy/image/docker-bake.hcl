# The image for both architectures, from what `make image-files` puts together:
#
#   make image-files
#   IMAGE=registry.example/plimsoll-hub:v1.2.3 docker buildx bake -f deploy/image/docker-bake.hcl --push
#
# The builder has to be one that can make an image of several platforms: `docker buildx create --use`, where the engine's own
# cannot. Nothing is run in the image, so none needs an emulator.

# The same as for `make image`.
variable "IMAGE" {
  default = "plimsoll-hub:dev"
}

group "default" {
  targets = ["hub"]
}

target "hub" {
  context    = "build/image"
  # From the context.
  dockerfile = "../../deploy/image/Dockerfile"
  platforms  = ["linux/amd64", "linux/arm64"]
  tags       = [IMAGE]
}
