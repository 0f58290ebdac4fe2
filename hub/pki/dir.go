package pki

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// dirCheckEvery is how old the knowledge of a folder's files may be.
const dirCheckEvery = 10 * time.Second

// DirCertificates serves with a certificate that somebody else puts into a folder, such as a mounted Secret: tls.crt,
// tls.key and, unless the certificate is signed by an authority that API servers know, ca.crt. Files that change are
// taken up within ten seconds, without a restart; a pair that does not fit together is ignored until it does.
type DirCertificates struct {
	dir string

	mu       sync.Mutex
	checked  time.Time
	files    dirFiles
	pair     *tls.Certificate
	lastFail error
}

type dirFiles struct{ cert, key, ca []byte }

// DirTLS reads the certificate in dir; what it cannot read, or what does not fit together, is an error.
func DirTLS(dir string) (*DirCertificates, error) {
	d := &DirCertificates{dir: dir}
	if err := d.reload(); err != nil {
		return nil, err
	}
	d.checked = time.Now()
	return d, nil
}

// ServerTLS serves with the folder's current certificate.
func (d *DirCertificates) ServerTLS() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			pair, _ := d.current(time.Now())
			return pair, nil
		},
	}
}

// Bundle is the current content of ca.crt in PEM, nil without that file: members then trust what their system trusts.
func (d *DirCertificates) Bundle() []byte {
	_, bundle := d.current(time.Now())
	return bundle
}

// Err says why the files as they are now are not in use, nil when they are. It never quotes them.
func (d *DirCertificates) Err() error {
	d.current(time.Now())
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lastFail
}

func (d *DirCertificates) current(now time.Time) (*tls.Certificate, []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now.Sub(d.checked) >= dirCheckEvery {
		d.checked = now
		d.lastFail = d.reload()
	}
	return d.pair, d.files.ca
}

// reload takes up the files if they changed and fit together. Handshakes are rare on kept connections, so the few
// kilobytes are simply read again.
func (d *DirCertificates) reload() error {
	files, err := readDirFiles(d.dir)
	if err != nil {
		return err
	}
	if d.pair != nil && files.equal(d.files) {
		return nil
	}
	pair, err := tls.X509KeyPair(files.cert, files.key)
	if err != nil {
		return fmt.Errorf("certificate directory %s: tls.crt and tls.key: %w", d.dir, err)
	}
	if files.ca != nil {
		if _, err := parseCertificates(files.ca); err != nil {
			return fmt.Errorf("certificate directory %s: ca.crt: %w", d.dir, err)
		}
	}
	d.files, d.pair = files, &pair
	return nil
}

func readDirFiles(dir string) (dirFiles, error) {
	var files dirFiles
	for _, file := range []struct {
		name string
		into *[]byte
	}{{"tls.crt", &files.cert}, {"tls.key", &files.key}, {"ca.crt", &files.ca}} {
		content, err := os.ReadFile(filepath.Join(dir, file.name))
		if file.name == "ca.crt" && errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return dirFiles{}, fmt.Errorf("certificate folder: %w", err) // names the file
		}
		*file.into = content
	}
	return files, nil
}

func (f dirFiles) equal(other dirFiles) bool {
	return bytes.Equal(f.cert, other.cert) && bytes.Equal(f.key, other.key) && bytes.Equal(f.ca, other.ca)
}
