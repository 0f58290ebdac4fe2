package lists

import (
	"slices"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// FuzzPageToken looks for a token that is read as a Position of another list, or refused with anything but an invalid argument.
func FuzzPageToken(f *testing.F) {
	f.Add(EncodePosition(Position{"prod-eu", "shop", "cart"}, "prod-eu", "shop"), "prod-eu", "shop")
	f.Add(EncodePosition(Position{"prod-eu"}), "", "")
	f.Add("eyJmIjoiIiwiYSI6bnVsbH0", "a\x00", "b")
	f.Add("!", "", "")
	f.Fuzz(func(t *testing.T, token, member, namespace string) {
		for length := range 4 {
			after, err := DecodePosition(token, length, member, namespace)
			switch {
			case err != nil && status.Code(err) != codes.InvalidArgument:
				t.Fatalf("%q: %v", token, err)
			case err == nil && token != "" && len(after) != length:
				t.Fatalf("%q: %d parts of %d", token, len(after), length)
			case err == nil && token != "":
				again, err := DecodePosition(EncodePosition(after, member, namespace), length, member, namespace)
				if err != nil || !slices.Equal(after, again) {
					t.Fatalf("%q: %q became %q: %v", token, after, again, err)
				}
			}
		}
	})
}
