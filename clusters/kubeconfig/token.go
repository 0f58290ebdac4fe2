package kubeconfig

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

// TokenRenewalAnnotation on a registration Secret says who renews the member's token. [RenewedElsewhere] means that the hub does
// not: the Secret comes from Git, or from another program, which would write its own token back.
const TokenRenewalAnnotation = "plimsoll.dev/token-renewal"

// RenewedElsewhere is the value of [TokenRenewalAnnotation] with a meaning.
const RenewedElsewhere = "external"

// Token is what a service account's token says of itself. Nobody has verified it.
type Token struct {
	// Namespace and Account are whose token it is.
	Namespace, Account string
	// Issued and Expires are when it was issued and when it ends; Expires is zero for one that does not.
	Issued, Expires time.Time
}

// Life is how long the token lives in all; 0 for one that does not expire.
func (t Token) Life() time.Duration {
	if t.Expires.IsZero() {
		return 0
	}
	return t.Expires.Sub(t.Issued)
}

// Spent is the share of the token's life that is over at now, in percent, from 0; 0 for a token that does not expire.
func (t Token) Spent(now time.Time) int {
	life := t.Life()
	switch {
	case t.Expires.IsZero():
		return 0
	case life <= 0:
		return 100
	}
	return int(max(0, now.Sub(t.Issued)) / time.Second * 100 / (life / time.Second)) // in seconds: in nanoseconds three years would be too many
}

// maxTokenBytes bounds what is decoded; tokens of service accounts have about 1 KiB.
const maxTokenBytes = 16 << 10

// TokenOf returns the token of a service account in the current context of a kubeconfig; false when there is none, as with a
// client certificate.
func TokenOf(kubeconfig []byte) (Token, bool) {
	_, user, err := currentContext(kubeconfig)
	if err != nil {
		return Token{}, false
	}
	return parseToken(user.Token)
}

// Unrenewable returns what expires first of the credentials in the current context of a kubeconfig that are no token of a service
// account, with what it is for people, and when it was issued and ends; false: nothing of that kind expires. Files are not read.
func Unrenewable(kubeconfig []byte) (what string, first Token, ok bool) {
	_, user, err := currentContext(kubeconfig)
	if err != nil {
		return "", Token{}, false
	}
	if _, renewable := parseToken(user.Token); !renewable {
		if claims, is := parseClaims(user.Token); is && claims.Expires > 0 {
			what, first = "token", claims.life()
		}
	}
	for rest := user.ClientCertificateData; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return what, first, what != ""
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err == nil && (what == "" || certificate.NotAfter.Before(first.Expires)) {
			what, first = "client certificate", Token{Issued: certificate.NotBefore, Expires: certificate.NotAfter}
		}
	}
}

// claims are those of a JSON Web Token that matter here. Dates are in seconds since 1970, and may have fractions.
type claims struct {
	Subject string  `json:"sub"`
	Issued  float64 `json:"iat"`
	Expires float64 `json:"exp"`
}

// assumedLife is that of a token that does not say when it was issued.
const assumedLife = 24 * time.Hour

// life is when the token was issued and ends.
func (c claims) life() Token {
	token := Token{Issued: moment(c.Issued), Expires: moment(c.Expires)}
	if c.Issued == 0 {
		token.Issued = token.Expires.Add(-assumedLife)
	}
	return token
}

// moment is a date in a token; what is further away than any date that a calendar has is cut off.
func moment(seconds float64) time.Time {
	const most = 200_000_000_000
	return time.Unix(int64(max(-most, min(seconds, most))), 0)
}

func parseClaims(text string) (is claims, ok bool) {
	parts := strings.Split(text, ".")
	if len(text) > maxTokenBytes || len(parts) != 3 {
		return claims{}, false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	ok = err == nil && json.Unmarshal(payload, &is) == nil
	return is, ok
}

func parseToken(text string) (Token, bool) {
	claims, ok := parseClaims(text)
	if !ok {
		return Token{}, false
	}
	name, ok := strings.CutPrefix(claims.Subject, "system:serviceaccount:")
	namespace, account, both := strings.Cut(name, ":")
	if !ok || !both {
		return Token{}, false
	}
	token := Token{Namespace: namespace, Account: account, Issued: moment(claims.Issued)}
	if claims.Expires > 0 {
		token.Expires = moment(claims.Expires)
	}
	return token, true
}

// WithToken returns a kubeconfig with another token for the user of its current context, and all else as it was. Errors quote
// nothing of it.
func WithToken(kubeconfig []byte, token string) ([]byte, error) {
	if _, _, err := currentContext(kubeconfig); err != nil {
		return nil, err
	}
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, errors.New("kubeconfig: not a valid kubeconfig")
	}
	config.AuthInfos[config.Contexts[config.CurrentContext].AuthInfo].Token = token
	text, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: cannot be written")
	}
	return text, nil
}
