package simulated

import (
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"
)

// A Fleet is a number of simulated members. Its methods may be called concurrently.
type Fleet struct {
	Members []*Member

	servers []*http.Server
	serving sync.WaitGroup
}

// Start starts n members, named prefix-0, prefix-1 and so on. Close ends them.
func Start(prefix string, n int) (*Fleet, error) {
	certificate, authority := certificate()
	f := &Fleet{}
	for i := range n {
		listener, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("start simulated member %d of %d: %w", i, n, err)
		}
		m := newMember(fmt.Sprintf("%s-%d", prefix, i), "https://"+listener.Addr().String(), authority)
		server := &http.Server{
			Handler: m, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0),
			TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
		}
		f.Members, f.servers = append(f.Members, m), append(f.servers, server)
		f.serving.Go(func() {
			if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
				panic(fmt.Sprintf("simulated member %s: %v", m.Name, err))
			}
		})
	}
	return f, nil
}

// certificate returns the certificate of all members, which is its own authority.
func certificate() (tls.Certificate, []byte) {
	server := httptest.NewUnstartedServer(nil)
	server.StartTLS()
	defer server.Close()
	return server.TLS.Certificates[0], pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

// Close ends all members at once, with the connections to them.
func (f *Fleet) Close() {
	for _, m := range f.Members {
		m.EndWatches()
	}
	for _, server := range f.servers {
		_ = server.Close()
	}
	f.serving.Wait()
}
