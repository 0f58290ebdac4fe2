module github.com/plimsoll-dev/plimsoll/tools/sbom

go 1.26.3

require github.com/CycloneDX/cyclonedx-go v0.12.0
