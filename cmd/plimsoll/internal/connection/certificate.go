package connection

import (
	"crypto/tls"
	"errors"
	"fmt"

	"github.com/spf13/pflag"
)

// certificateSource is where the client certificate for the API comes from.
type certificateSource struct{ certificate, key string }

func (s *certificateSource) flags(flags *pflag.FlagSet) {
	flags.StringVar(&s.certificate, "client-certificate", "",
		"PEM file with a client certificate, for hubs with api.clientCA; it says who calls, unless a token does (PLIMSOLL_CLIENT_CERTIFICATE)")
	flags.StringVar(&s.key, "client-key", "", "PEM file with the key of --client-certificate (PLIMSOLL_CLIENT_KEY)")
}

// given reports whether a flag says which certificate it is.
func (s *certificateSource) given() bool { return s.certificate != "" || s.key != "" }

// read returns the certificate that flags or else the environment name; nil: none.
func (s *certificateSource) read(getenv func(string) string) (*tls.Certificate, error) {
	certificate, key := s.certificate, s.key
	if !s.given() {
		certificate, key = getenv("PLIMSOLL_CLIENT_CERTIFICATE"), getenv("PLIMSOLL_CLIENT_KEY")
	}
	switch {
	case certificate == "" && key == "":
		return nil, nil
	case certificate == "" || key == "":
		return nil, errors.New("--client-certificate and --client-key (PLIMSOLL_CLIENT_CERTIFICATE and PLIMSOLL_CLIENT_KEY): give both or none of them")
	}
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("--client-certificate %s, --client-key %s: %w", certificate, key, err)
	}
	return &pair, nil
}
