package main

import (
	"bufio"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
)

// bareCommand is the argument with which this program is the handler to compare with.
const bareCommand = "serve-bare"

// serveBare is the least that an admission webhook can be: net/http over TLS, the body read, scanned by encoding/json for
// the request's UID, and answered with a patch that never changes. It writes its URL and its certificate, and runs until
// its input ends.
func serveBare(in io.Reader, out io.Writer) error {
	server := httptest.NewUnstartedServer(http.HandlerFunc(answerBare))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if _, err := fmt.Fprintf(out, "%s\n%s\n", server.URL, certificate); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, in)
	return err
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

// A bare is that handler in a process of its own, like the hub.
type bare struct {
	cmd    *exec.Cmd
	input  io.Closer
	url    string
	bundle []byte
}

func startBare() (*bare, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	b := &bare{cmd: exec.Command(self, bareCommand)}
	input, err := b.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	b.input = input
	output, err := b.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := b.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the bare handler: %w", err)
	}
	lines := bufio.NewScanner(output)
	if lines.Scan() {
		b.url = lines.Text()
	}
	for lines.Scan() && lines.Text() != "" {
		b.bundle = append(append(b.bundle, lines.Bytes()...), '\n')
	}
	return b, lines.Err()
}

// stop ends it.
func (b *bare) stop() error {
	_ = b.input.Close() // which is what ends it
	return b.cmd.Wait()
}
