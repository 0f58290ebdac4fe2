package lists

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/plimsoll-dev/plimsoll/hub/api/internal/apierror"
)

const (
	defaultPage = 100
	// MaxPage is how many items a page may have.
	MaxPage = 500

	// AfterAll sorts behind every name that Kubernetes knows, so that a Position {member, AfterAll} is behind the member.
	AfterAll = "~"
)

// Position is where a list goes on: behind the item with this key.
type Position []string

// pageToken is what a page_token holds. It says where to continue and nothing about who may: every page is authorized again.
type pageToken struct {
	Filter string   `json:"f"` // what was listed
	After  Position `json:"a"`
}

// EncodePosition makes the token for the page that starts behind after; filters are those of the list.
func EncodePosition(after Position, filters ...string) string {
	text, err := json.Marshal(pageToken{Filter: Fingerprint(filters), After: after})
	if err != nil {
		return "" // strings always marshal
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// DecodePosition returns the Position in a page_token, which must have been made for the same list; nil for the first page.
func DecodePosition(token string, length int, filters ...string) (Position, error) {
	if token == "" {
		return nil, nil
	}
	var decoded pageToken
	text, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || json.Unmarshal(text, &decoded) != nil || len(decoded.After) != length {
		return nil, apierror.InvalidField("page_token", "page_token.malformed", "is not a next_page_token of this API")
	}
	if decoded.Filter != Fingerprint(filters) {
		return nil, apierror.InvalidField("page_token", "page_token.filters", "is for a list with other filters, or for another caller")
	}
	return decoded.After, nil
}

// Fingerprint is a short text that differs where the filters of two lists do.
func Fingerprint(filters []string) string {
	sum := sha256.Sum256([]byte(strings.Join(filters, "\x00")))
	return hex.EncodeToString(sum[:8])
}

// PageSize applies the default; the rules of the .proto files hold its bounds.
func PageSize(asked int32) int {
	if asked <= 0 {
		return defaultPage
	}
	return min(int(asked), MaxPage)
}
