package page

import (
	"context"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube/proc"
)

func TestPlimsollDashboardOpensThePageWithoutAToken(t *testing.T) {
	l := look(t, "")
	address := l.dashboard()
	l.must(l.tab.Do(chromedp.Navigate(address)))
	l.until(readyTile)
	kept, err := Evaluate[string](l.tab, `location.href + JSON.stringify(sessionStorage) + document.cookie`)
	l.must(err)
	_, secret, _ := strings.Cut(address, "#once=")
	if strings.Contains(kept, Admin) || strings.Contains(kept, secret) {
		t.Errorf("the browser keeps the token or the secret: %s", kept)
	}
	// It is live, and acts.
	l.AddMember("newcomer")
	l.until(`document.querySelector('[data-member="newcomer"]')`)
	l.must(l.tab.Do(chromedp.Reload()))
	l.until(readyTile)
	// Who finds the address later has nothing.
	other, err := browser.NewTab(800, 600, "")
	l.must(err)
	defer other.Close()
	l.must(other.Do(chromedp.Navigate(address)))
	l.must(other.Until(`document.body.innerText.includes("This link has been used")`))
}

// dashboard runs the command, and returns the address that it prints.
func (l *looking) dashboard() string {
	l.Helper()
	dir := l.TempDir()
	program := filepath.Join(dir, "plimsoll")
	l.must(fleet.BuildCLI(l.Context(), "../..", program))
	authority := filepath.Join(dir, "ca.crt")
	l.must(os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: l.Certificate.Raw}), 0o600))
	log := filepath.Join(dir, "log")
	command, err := proc.Start(proc.Command{
		Program: program, Args: []string{"dashboard"}, Log: log,
		Env: append(os.Environ(), "PLIMSOLL_API="+l.GRPC, "PLIMSOLL_CA_FILE="+authority, "PLIMSOLL_TOKEN="+Admin),
	})
	l.must(err)
	l.Cleanup(func() {
		stopping, cancel := context.WithTimeout(context.Background(), Patience)
		defer cancel()
		if err := errors.Join(command.Stop(stopping), command.Wait()); err != nil {
			l.Error(err)
		}
	})
	waiting, cancel := context.WithTimeout(l.Context(), Patience)
	defer cancel()
	var address string
	l.must(command.AwaitReady(waiting, proc.FirstLine(log, &address)))
	return address
}
