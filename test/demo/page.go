package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"
)

// pageAddress is where the hub serves its web page.
func pageAddress(p ports) string { return "https://" + loopback(p.REST) + "/ui/" }

// dashboardLine opens the same page without a token to paste. It runs until it is interrupted.
func dashboardLine(p ports) string {
	return fmt.Sprintf("PLIMSOLL_API=%s PLIMSOLL_CA_FILE=%s PLIMSOLL_TOKEN_FILE=%s %s dashboard", loopback(p.GRPC), caFile, tokenFile, cliBinary)
}

// printPage says where there is something to look at.
func (d *demo) printPage() {
	d.screen.title("Look at it in a browser")
	d.screen.printf("  %s\n    %s", d.screen.paint(faint, "# open the address that this prints; it works once"), dashboardLine(d.ports))
	d.screen.printf("\n  %s\n    %s", d.screen.paint(faint, "# or sign in with the token in "+tokenFile+"; the browser does not know the hub's CA, and will say so"), pageAddress(d.ports))
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
		command := exec.CommandContext(ctx, fields[3], fields[4:]...)
		command.Env = append(os.Environ(), fields[:3]...)
		command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
		command.WaitDelay = 10 * time.Second
		printed, err := command.StdoutPipe()
		if err != nil {
			return "", err
		}
		if err := command.Start(); err != nil {
			return "", err
		}
		defer func() {
			err = errors.Join(err, command.Process.Signal(os.Interrupt), command.Wait())
		}()
		line, err := bufio.NewReader(printed).ReadString('\n')
		if err != nil {
			return "", fmt.Errorf("it printed %q: %w", line, err)
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
