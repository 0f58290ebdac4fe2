package api

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"
)

const (
	defaultPage = 100
	maxPage     = 500

	// afterAll sorts behind every name that Kubernetes knows, so that a position {member, afterAll} is behind the member.
	afterAll = "~"
)

// position is where a list goes on: behind the item with this key.
type position []string

// pageToken is what a page_token holds. It says where to go on and nothing about who may: every page is authorized anew.
type pageToken struct {
	Filter string   `json:"f"` // what was listed
	After  position `json:"a"`
}

// encodePosition makes the token for the page that starts behind after; filters are those of the list.
func encodePosition(after position, filters ...string) string {
	text, err := json.Marshal(pageToken{Filter: fingerprint(filters), After: after})
	if err != nil {
		return "" // strings always marshal
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// decodePosition returns the position in a page_token, which must have been made for the same list; nil for the first page.
func decodePosition(token string, length int, filters ...string) (position, error) {
	if token == "" {
		return nil, nil
	}
	var decoded pageToken
	text, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || json.Unmarshal(text, &decoded) != nil || len(decoded.After) != length {
		return nil, invalidField("page_token", "page_token.malformed", "is not a next_page_token of this API")
	}
	if decoded.Filter != fingerprint(filters) {
		return nil, invalidField("page_token", "page_token.filters", "was made for a list with other filters, or for another caller")
	}
	return decoded.After, nil
}

func fingerprint(filters []string) string {
	sum := sha256.Sum256([]byte(strings.Join(filters, "\x00")))
	return hex.EncodeToString(sum[:8])
}

// pageSize applies the default; the rules of the .proto files hold its bounds.
func pageSize(asked int32) int {
	if asked <= 0 {
		return defaultPage
	}
	return min(int(asked), maxPage)
}
