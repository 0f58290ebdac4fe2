package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestAnOwnerThatDoesNotAnswerCostsOneAdmissionASecondItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s silentOwners
		if !s.mayAsk("a") {
			t.Fatal("an owner that nobody asked yet is not asked")
		}
		s.asked("a", context.DeadlineExceeded)
		if s.mayAsk("a") {
			t.Error("it is asked again at once")
		}
		if !s.mayAsk("b") {
			t.Error("another owner is not asked")
		}
		time.Sleep(askSilentEvery)
		if !s.mayAsk("a") || s.mayAsk("a") {
			t.Error("a second later not exactly one admission asks it")
		}
		s.asked("a", errors.New("refused")) // something answers
		for range 2 {
			if !s.mayAsk("a") {
				t.Error("an owner that answers again is not asked")
			}
		}
	})
}

func TestAdmissionsAreNotForwardedToAnOwnerThatHasJustNotAnswered(t *testing.T) {
	hung := make(chan struct{})
	owner := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hung }))
	owner.EnableHTTP2 = true
	owner.StartTLS()
	defer owner.Close()
	defer close(hung)
	trusted := x509.NewCertPool()
	trusted.AddCert(owner.Certificate())
	forwarder := NewForwarder(&tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS13})
	defer forwarder.Close()
	forward := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		return forwarder.forward(ctx, strings.TrimPrefix(owner.URL, "https://"), "eu", []byte("{}"), &bytes.Buffer{})
	}
	// One of several tries: on a machine that is busy a second may pass between two calls.
	for range 20 {
		if err := forward(); err == nil {
			t.Fatal("an owner that hangs has answered")
		}
		if errors.Is(forward(), errSilentOwner) {
			return
		}
	}
	t.Error("each admission waits for an owner that does not answer")
}
