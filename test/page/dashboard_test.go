package page

import (
	"bufio"
	"bytes"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
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
	if out, err := exec.CommandContext(l.Context(), "go", "build", "-o", program, "../../cmd/plimsoll").CombinedOutput(); err != nil {
		l.Fatalf("build the CLI: %v\n%s", err, out)
	}
	authority := filepath.Join(dir, "ca.crt")
	l.must(os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: l.Certificate.Raw}), 0o600))
	command := exec.Command(program, "dashboard")
	command.Env = append(os.Environ(), "PLIMSOLL_API="+l.GRPC, "PLIMSOLL_CA_FILE="+authority, "PLIMSOLL_TOKEN="+Admin)
	var said bytes.Buffer
	command.Stderr = &said
	printed, err := command.StdoutPipe()
	l.must(err)
	l.must(command.Start())
	l.Cleanup(func() {
		_ = command.Process.Signal(os.Interrupt)
		if err := command.Wait(); err != nil {
			l.Errorf("plimsoll dashboard: %v\n%s", err, &said)
		}
	})
	lines := bufio.NewScanner(printed)
	if !lines.Scan() {
		l.Fatalf("it printed nothing: %s", &said)
	}
	return lines.Text()
}
