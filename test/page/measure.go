package page

import "fmt"

// signedIn is a script that signs a tab in; "": nobody.
func signedIn(token string) string {
	if token == "" {
		return ""
	}
	return fmt.Sprintf(`sessionStorage.setItem("plimsoll.token", %q)`, token)
}
