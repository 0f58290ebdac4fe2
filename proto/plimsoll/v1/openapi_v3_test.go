package plimsollv1_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi2"
	"github.com/getkin/kin-openapi/openapi2conv"
	"github.com/getkin/kin-openapi/openapi3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// plainJSON is a message as REST writes it, as a value. The same message always gives the same.
func plainJSON(t *testing.T, message proto.Message) (value any) {
	t.Helper()
	text, err := protojson.Marshal(message)
	if err == nil {
		err = json.Unmarshal(text, &value)
	}
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// TestTheOpenAPIDocumentOfVersion3 keeps openapi.v3.json what the document of version 2 says, with examples, and valid.
func TestTheOpenAPIDocumentOfVersion3(t *testing.T) {
	var before openapi2.T
	if err := json.Unmarshal(plimsollv1.OpenAPI, &before); err != nil {
		t.Fatal(err)
	}
	document, err := openapi2conv.ToV3(&before)
	if err != nil {
		t.Fatal(err)
	}
	answers, bodies := exampleAnswers(), exampleBodies()
	for path, item := range document.Paths.Map() {
		for _, call := range item.Operations() {
			answer := answers[strings.TrimSuffix(call.OperationID, "2")] // a second path of the same call
			if answer == nil {
				t.Errorf("%s (%s) has no example", call.OperationID, path)
				continue
			}
			example := plainJSON(t, answer)
			if strings.HasSuffix(path, ":watch") {
				example = map[string]any{"result": example}
			}
			call.Responses.Value("200").Value.Content["application/json"].Example = example
			if body := bodies[call.OperationID]; body != nil {
				call.RequestBody.Value.Content["application/json"].Example = plainJSON(t, body)
			}
		}
	}
	text, err := json.MarshalIndent(document, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, '\n')
	loaded, err := openapi3.NewLoader().LoadFromData(text)
	if err == nil {
		err = loaded.Validate(t.Context(), openapi3.EnableExamplesValidation())
	}
	if err != nil {
		t.Fatalf("the document is not valid: %v", err)
	}
	holds(t, "openapi.v3.json", text)
	if !*update && !bytes.Equal(plimsollv1.OpenAPIv3, text) {
		t.Error("another document is served")
	}
}

func TestTheValidatorRefusesAnExampleThatDoesNotFit(t *testing.T) {
	loaded, err := openapi3.NewLoader().LoadFromData(plimsollv1.OpenAPIv3)
	if err != nil {
		t.Fatal(err)
	}
	loaded.Paths.Value("/v1/operations/{operation}").Get.Responses.Value("200").Value.Content["application/json"].Example = map[string]any{"operation": "text"}
	if err := loaded.Validate(t.Context(), openapi3.EnableExamplesValidation()); err == nil {
		t.Error("an operation that is a text is valid")
	}
}
