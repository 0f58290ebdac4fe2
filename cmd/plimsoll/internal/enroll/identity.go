package enroll

import (
	"context"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/clusters"
)

// identitySuffix ends the names of the roles for the Lease with which registrations show what cluster they lead to.
const identitySuffix = "-identity"

// identityLease is shared by all registrations of a cluster with one namespace for their accounts. The hub writes an annotation of it.
func identityLease(namespace string) func() (object, error) {
	return func() (object, error) {
		return of("leases", &coordinationv1.Lease{
			TypeMeta: typeMeta("coordination.k8s.io/v1", "Lease"), ObjectMeta: meta(namespace, clusters.IdentityLease),
		})
	}
}

// removeIdentity deletes the Lease when no other registration of the cluster has a role for it.
func (e *enrolment) removeIdentity(ctx context.Context, lease object) (Change, error) {
	change := Change{Side: SideMember, Object: lease.String()}
	roles, err := e.member.typed.RbacV1().Roles(e.MemberNamespace).List(ctx, metav1.ListOptions{LabelSelector: managedByLabel + "=" + fieldManager})
	if err != nil {
		return change, e.member.failed("list the roles for "+lease.String(), err)
	}
	for i := range roles.Items {
		if name := roles.Items[i].Name; strings.HasSuffix(name, identitySuffix) && name != e.names().role+identitySuffix {
			change.Action, change.Note = Kept, "role/"+e.MemberNamespace+"/"+name+" is for it"
			return change, nil
		}
	}
	return e.member.remove(ctx, lease)
}
