package plimsollv1

import _ "embed"

// OpenAPI is the OpenAPI (Swagger 2.0) document of the REST side of the API, as JSON. It must not be changed.
//
//go:embed openapi.swagger.json
var OpenAPI []byte

// OpenAPIv3 is the same as an OpenAPI 3 document, with examples. It must not be changed.
//
//go:embed openapi.v3.json
var OpenAPIv3 []byte
