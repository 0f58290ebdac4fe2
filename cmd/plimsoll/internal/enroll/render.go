package enroll

import (
	"bytes"
	"fmt"

	"sigs.k8s.io/yaml"
)

// redacted represents a token in what is shown.
const redacted = "REDACTED"

// Render returns what [Register] would apply, as YAML, with no token. It talks to no cluster.
func Render(r Registration, member, hub *Context) ([]byte, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	r.InCluster = r.InCluster || sameServer(member, hub)
	at, err := targetOf(member, r.Server, r.CA)
	if err != nil {
		return nil, err
	}
	inMember, err := memberObjects(r, r.TokenDuration == 0)
	if err != nil {
		return nil, err
	}
	kubeconfig, err := at.kubeconfig(r.Name, redacted)
	if err != nil {
		return nil, err
	}
	inHub, err := collect(namespaceObject(r.Namespace, r.namespaceLabels()), func() (object, error) { return registration(r, "", nil) })
	if err != nil {
		return nil, err
	}
	// Readable, unlike data.
	secret := inHub[1].body.Object
	delete(secret, "data")
	secret["stringData"] = map[string]any{KubeconfigKey: string(kubeconfig)}

	var text bytes.Buffer
	for _, side := range []struct {
		name    string
		in      *Context
		objects []object
	}{{SideMember, member, inMember}, {SideHub, hub, inHub}} {
		for _, o := range side.objects {
			content, err := yaml.Marshal(o.body.Object)
			if err != nil {
				return nil, fmt.Errorf("encode %s: %w", o, err)
			}
			fmt.Fprintf(&text, "---\n# in the %s (context %q)\n%s", side.name, side.in.Name, content)
		}
	}
	return text.Bytes(), nil
}
