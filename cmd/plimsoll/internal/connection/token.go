package connection

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/enroll"
)

// tokenSource is where the token for the API comes from.
type tokenSource struct {
	token, file string
	account     string // NAMESPACE/NAME in the hub cluster
	audience    string
}

func (s *tokenSource) flags(flags *pflag.FlagSet) {
	flags.StringVar(&s.file, "token-file", "", "file with a bearer token (PLIMSOLL_TOKEN_FILE)")
	flags.StringVar(&s.token, "token", "", "bearer token; rather use --token-file or PLIMSOLL_TOKEN, which other users of this machine cannot see")
	flags.StringVar(&s.account, "service-account", "",
		"NAMESPACE/NAME in the hub cluster whose token is requested with your kubeconfig (default: plimsoll-operator or plimsoll-viewer in the hub's namespace)")
	flags.StringVar(&s.audience, "audience", s.audience, "audience of the token that is requested")
}

// given reports whether a flag says which token it is.
func (s *tokenSource) given() bool { return s.token != "" || s.file != "" || s.account != "" }

// read returns the token that was given or asked for by --service-account; "" when there is none, which an unauthenticated hub takes.
func (s *tokenSource) read(ctx context.Context, getenv func(string) string, hub HubFlags) (string, error) {
	token, from := s.token, "--token"
	file := s.file
	if !s.given() { // a flag comes before the environment
		token, from = getenv("PLIMSOLL_TOKEN"), "PLIMSOLL_TOKEN"
		if token == "" {
			file = getenv("PLIMSOLL_TOKEN_FILE")
		}
	}
	switch {
	case s.token != "" && s.file != "":
		return "", errors.New("--token and --token-file: give one of them")
	case s.account != "" && (s.token != "" || s.file != ""):
		return "", errors.New("--service-account and a token: give one of them")
	case file != "":
		content, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("read the token: %w", err)
		}
		token, from = string(content), file
	case s.account != "":
		return s.request(ctx, getenv, hub)
	}
	token = strings.TrimSpace(token)
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return "", fmt.Errorf("%s: not a bearer token: it must be one line of printable ASCII", from)
	}
	return token, nil
}

// request asks the hub cluster for a token.
func (s *tokenSource) request(ctx context.Context, getenv func(string) string, from HubFlags) (string, error) {
	namespace, name, ok := strings.Cut(s.account, "/")
	if !ok || namespace == "" || name == "" {
		return "", fmt.Errorf("--service-account %q: must be NAMESPACE/NAME", s.account)
	}
	hub, err := from.Load(getenv)
	if err != nil {
		return "", err
	}
	return enroll.AudienceToken(ctx, hub, namespace, name, s.audience)
}
