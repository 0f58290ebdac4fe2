# The image for both architectures: make image-files, then
#
#   IMAGE=registry.example/plimsoll-hub TAG=v1.2.3 docker buildx bake -f deploy/image/docker-bake.hcl --push

variable "IMAGE" {
  default = "plimsoll-hub"
}

variable "TAG" {
  default = "dev"
}

group "default" {
  targets = ["hub"]
}

target "hub" {
  context    = "build/image"
  dockerfile = "../../deploy/image/Dockerfile"
  platforms  = ["linux/amd64", "linux/arm64"]
  tags       = ["${IMAGE}:${TAG}"]
}
