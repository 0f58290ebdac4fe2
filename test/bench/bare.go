package main

import (
	"encoding/gob"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
)

// bareCommand is the argument with which this program is the handler to compare with.
const bareCommand = "serve-bare"

// A bareReport says where the handler serves, and which certificate authority it has, in PEM.
type bareReport struct {
	URL    string
	Bundle []byte
}

// serveBare is the least that an admission webhook can be: net/http over TLS, the body read, scanned by encoding/json for
// the request's UID, and answered with a patch that never changes. It reports where, and runs until it is killed.
func serveBare(_ io.Reader, out io.Writer) error {
	server := httptest.NewUnstartedServer(http.HandlerFunc(answerBare))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := gob.NewEncoder(out).Encode(bareReport{server.URL, certificate}); err != nil {
		return err
	}
	select {}
}

// barePatch is as long as a real one, in base64.
var barePatch = strings.Repeat("W3sib3AiOiJh", 35)

func answerBare(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var review struct {
		Request struct {
			UID string `json:"uid"`
		} `json:"request"`
	}
	if err := json.Unmarshal(body, &review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"`+review.Request.UID+
		`","allowed":true,"patchType":"JSONPatch","patch":"`+barePatch+`"}}`) // who called may be gone
}
