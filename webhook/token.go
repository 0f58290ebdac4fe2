package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"net/url"
	"strconv"
	"sync"

	"github.com/plimsoll-dev/plimsoll/clusters"
)

// TokenGenerationAnnotation is the annotation of a registration Secret whose value, a whole number from 0 (the default),
// goes into the member's token: raising it by one rotates the token. The token of the generation before stays good, so
// that no call is lost while the new one reaches the member; raising it by two shuts out the old one at once.
const TokenGenerationAnnotation = "plimsoll.dev/webhook-token-generation"

// tokenBytes of the HMAC are used, which base64url writes in 32 characters.
const tokenBytes = 24

// Registrations looks up the registration of a member, false when there is none. It is called for every admission call,
// concurrently.
type Registrations func(member string) (clusters.Registration, bool)

// Tokens derives and checks the members' capability tokens. A token is worth nothing but placement reservations in its
// own member, because API servers log the URL of a webhook that fails. Nothing is stored: a token follows from the hub's
// key, the member, its registration's UID, the generation and the purpose: who sees one URL of a member, and whoever may
// read CRDs sees the converter's, cannot make calls of another kind. Tokens may be used concurrently.
type Tokens struct {
	registrations Registrations
	purpose       Purpose
	macs          *sync.Pool // of hash.Hash with the key
}

// Purpose is the kind of calls that a token is for; that of calls about one kind is the kind's plural.
type Purpose string

// Purposes of tokens.
const (
	ForPods        Purpose = "" // the admission of pods
	ForConversions Purpose = "convert"
)

// For returns the tokens of a purpose, of the same members and with the same key.
func (t *Tokens) For(purpose Purpose) *Tokens {
	return &Tokens{registrations: t.registrations, purpose: purpose, macs: t.macs}
}

// NewTokens derives tokens for pods from key, which must be random and at least 32 bytes; see [CA.Tokens].
func NewTokens(key []byte, registrations Registrations) *Tokens {
	return &Tokens{registrations: registrations, macs: &sync.Pool{New: func() any { return hmac.New(sha256.New, key) }}}
}

// Current returns the token that the member's webhook configuration should carry now.
func (t *Tokens) Current(member string) (string, error) {
	registration, ok := t.registrations(member)
	if !ok {
		return "", fmt.Errorf("member %s: webhook token: not registered", member)
	}
	generation, err := tokenGeneration(registration.Annotations)
	if err != nil {
		return "", fmt.Errorf("member %s: webhook token: %w", member, err)
	}
	var token [tokenChars]byte
	t.derive(&token, member, registration.UID, generation)
	return string(token[:]), nil
}

// Verify reports whether token is the member's token of this generation or the one before. While the annotation is not a
// number, no token is good. How long it takes shows neither how much of a token is right nor whether the member exists.
func (t *Tokens) Verify(member, token string) bool {
	registration, ok := t.registrations(member)
	generation, err := tokenGeneration(registration.Annotations)
	var want [tokenChars]byte
	t.derive(&want, member, registration.UID, generation)
	match := subtle.ConstantTimeCompare(want[:], []byte(token))
	if generation > 0 {
		t.derive(&want, member, registration.UID, generation-1)
		match |= subtle.ConstantTimeCompare(want[:], []byte(token))
	}
	return match == 1 && ok && err == nil
}

const tokenChars = tokenBytes * 4 / 3

// derive writes base64url(HMAC-SHA256(key, member \0 uid \0 generation)), with \0 and the purpose at the end unless that is
// pods, cut to 32 characters. The zero bytes keep the parts apart: neither a name nor a UID holds one.
func (t *Tokens) derive(into *[tokenChars]byte, member, uid string, generation uint64) {
	text := make([]byte, 0, 128)
	text = append(text, member...)
	text = append(text, 0)
	text = append(text, uid...)
	text = append(text, 0)
	text = strconv.AppendUint(text, generation, 10)
	if t.purpose != ForPods {
		text = append(append(text, 0), t.purpose...)
	}
	mac := t.macs.Get().(hash.Hash)
	defer t.macs.Put(mac)
	mac.Reset()
	mac.Write(text)
	var sum [sha256.Size]byte
	base64.RawURLEncoding.Encode(into[:], mac.Sum(sum[:0])[:tokenBytes])
}

// tokenGeneration reads the annotation. A bad value is not taken for 0: that could bring back a token that was rotated away.
func tokenGeneration(annotations map[string]string) (uint64, error) {
	value, ok := annotations[TokenGenerationAnnotation]
	if !ok {
		return 0, nil
	}
	generation, err := strconv.ParseUint(value, 10, 31)
	if err != nil {
		return 0, fmt.Errorf("annotation %s: %q must be a whole number from 0 to %d", TokenGenerationAnnotation, value, uint64(1)<<31-1)
	}
	return generation, nil
}

// ParseBaseURL checks the address under which members reach the hub (webhook.url of the configuration): https, a host,
// and at most a path.
func ParseBaseURL(text string) (*url.URL, error) {
	base, err := url.Parse(text)
	if parse := (*url.Error)(nil); errors.As(err, &parse) {
		return nil, fmt.Errorf("webhook URL: %w", parse.Err) // the text may hold a password
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("webhook URL: %w", err)
	case base.User != nil:
		return nil, fmt.Errorf("webhook URL %q: must not have a user", base.Redacted())
	case base.Scheme != "https" || base.Hostname() == "":
		return nil, fmt.Errorf("webhook URL %q: must be https://host[:port]", text)
	case base.RawQuery != "" || base.Fragment != "":
		return nil, fmt.Errorf("webhook URL %q: must not have a query or a fragment", text)
	}
	return base, nil
}

// callURL is where the API server of a member sends its pods.
func callURL(base *url.URL, member, token string) string {
	return base.JoinPath("webhook", "v1", "members", member, token, "pods").String()
}
