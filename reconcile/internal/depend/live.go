package depend

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// RequireLive is Require for requests that no controller made.
func RequireLive(ctx context.Context, live client.Reader, obj client.Object, all []Dependency) *Unmet {
	var u Unmet
	for _, d := range all {
		d = d.of("", obj.GetNamespace())
		why := d.invalid()
		if why == "" && (d.external() || d.member != "") {
			why = "a request that no controller made cannot look there"
		}
		if why == "" {
			f := observe(ctx, live, d)
			why = f.why(d)
		}
		if why != "" {
			u.missing = append(u.missing, missing{dependency: d, why: why})
		}
	}
	if len(u.missing) == 0 {
		return nil
	}
	return &u
}
