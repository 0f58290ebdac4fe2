package kube

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// TokenUntil is a token of a service account that the API server takes until a time, which may be past. TokenRequest gives
// none for less than ten minutes, so one of its tokens is signed again, with the cluster's own key.
func (c *Cluster) TokenUntil(ctx context.Context, namespace, name string, until time.Time) (string, error) {
	token, err := c.Token(ctx, namespace, name)
	if err != nil {
		return "", err
	}
	signing, err := c.signingKey()
	if err != nil {
		return "", err
	}
	again, err := resign(token, until, signing)
	if err != nil {
		return "", fmt.Errorf("cluster %s: a token of %s/%s until %s: %w", c.name, namespace, name, until.Format(time.RFC3339), err)
	}
	return again, nil
}

func (c *Cluster) signingKey() (*ecdsa.PrivateKey, error) {
	content, err := os.ReadFile(c.file("sa.key"))
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", c.name, err)
	}
	block, _ := pem.Decode(content)
	if block == nil {
		return nil, fmt.Errorf("cluster %s: sa.key is no PEM", c.name)
	}
	return x509.ParseECPrivateKey(block.Bytes)
}

// resign gives a JSON web token (RFC 7519) other times, and signs it as ES256 (RFC 7518, section 3.4).
func resign(token string, until time.Time, signing *ecdsa.PrivateKey) (string, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "", errors.New("not a signed JSON web token")
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return "", err
	}
	var claims map[string]any
	if err := json.Unmarshal(text, &claims); err != nil {
		return "", err
	}
	from := until.Add(-tokenLife)
	claims["iat"], claims["nbf"], claims["exp"] = from.Unix(), from.Unix(), until.Unix()
	if text, err = json.Marshal(claims); err != nil {
		return "", err
	}
	signed := parts[0] + "." + base64.RawURLEncoding.EncodeToString(text)
	sum := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, signing, sum[:])
	if err != nil {
		return "", err
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}
