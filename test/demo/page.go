package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/plimsoll-dev/plimsoll/test/kube/proc"
)

// pageAddress is where the hub serves its web page.
func pageAddress(p ports) string { return "https://" + loopback(p.REST) + "/ui/" }

// dashboardLine opens the same page without a token to paste. It runs until it is interrupted.
func dashboardLine(p ports) string {
	return fmt.Sprintf("PLIMSOLL_API=%s PLIMSOLL_CA_FILE=%s PLIMSOLL_TOKEN_FILE=%s %s dashboard", loopback(p.GRPC), caFile, tokenFile, cliBinary)
}

// dashboardSays is what dashboardLine does.
const dashboardSays = "open the address that this prints; it works once"

// printPage prints how to open the web page.
func (d *demo) printPage() {
	d.screen.title("Open the web page")
	d.screen.printf("  %s\n    %s", d.screen.paint(faint, "# "+dashboardSays), dashboardLine(d.ports))
	d.screen.printf("\n  %s\n    %s", d.screen.paint(faint, "# or sign in with the token in "+tokenFile+"; the browser warns about the certificate, because it does not trust the hub's CA"), pageAddress(d.ports))
}

// pages checks that the web page is where the demo says.
func (c *checks) pages(ctx context.Context) {
	c.check(ctx, "the hub serves its web page", func(ctx context.Context) (string, error) {
		authority, err := os.ReadFile(caFile)
		if err != nil {
			return "", err
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(authority)
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
		defer client.CloseIdleConnections()
		return pageAddress(c.ports), isPage(ctx, client, pageAddress(c.ports))
	})
	c.check(ctx, "the printed plimsoll dashboard line serves it as well", func(ctx context.Context) (found string, err error) {
		fields := strings.Fields(dashboardLine(c.ports))
		log := folder + "/dashboard.log"
		command, err := proc.Start(proc.Command{Program: fields[3], Args: fields[4:], Env: append(os.Environ(), fields[:3]...), Log: log})
		if err != nil {
			return "", err
		}
		defer func() {
			stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), tryTimeout)
			defer cancel()
			err = errors.Join(err, command.Stop(stopping), command.Wait())
		}()
		var line string
		if err := command.AwaitReady(ctx, proc.FirstLine(log, &line)); err != nil {
			return "", err
		}
		address, _, _ := strings.Cut(line, "#")
		client := &http.Client{Transport: &http.Transport{}}
		defer client.CloseIdleConnections()
		return address, isPage(ctx, client, address)
	})
}

// isPage checks that there is the page at an address.
func isPage(ctx context.Context, client *http.Client, address string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err == nil && (answer.StatusCode != http.StatusOK || !strings.Contains(string(text), "<title>Plimsoll</title>")) {
		err = fmt.Errorf("%s: HTTP %d: %s", address, answer.StatusCode, cut(string(text), 200))
	}
	return err
}
