package hub

import (
	"cmp"
	"os"
	"time"

	"github.com/plimsoll-dev/plimsoll/hub/config"
	"github.com/plimsoll-dev/plimsoll/hub/leadership"
)

// Ownership says which replica may act on a member. Two members may have different owners, and none may have any. Its methods
// may be called concurrently, and answer from memory.
type Ownership interface {
	// Owner returns the host and port at which the owner's peers reach it, and until when its ownership is known to last.
	// The address is empty when nobody is known to own the member; it stays when until has passed, for an owner that
	// lost touch with the hub cluster still answers questions.
	Owner(member string) (address string, until time.Time)
	// Mine reports whether this replica may act on the member now, and until when it may if nothing changes.
	Mine(member string) (until time.Time, ok bool)
	// MineAny reports whether there may be a member on which this replica may act now.
	MineAny() bool
	// Subscribe calls f, one call at a time, whenever an answer of Owner's address or of Mine has changed for any member. f
	// must return soon.
	Subscribe(f func())
}

// sole is the Ownership of a replica that is configured to be the only one.
type sole struct{ address string }

// foreverFrom is far enough for something that has no end.
func foreverFrom(now time.Time) time.Time { return now.Add(100 * 365 * 24 * time.Hour) }

func (s sole) Owner(string) (string, time.Time) { return s.address, foreverFrom(time.Now()) }

func (s sole) Mine(string) (time.Time, bool) { return foreverFrom(time.Now()), true }

func (s sole) MineAny() bool { return true }

func (s sole) Subscribe(func()) {}

// MayWrite always allows it.
func (s sole) MayWrite(string) error { return nil }

// BeginWrite implements clusters.Fence.
func (s sole) BeginWrite(string) (time.Time, func(), error) { return time.Time{}, func() {}, nil }

// newIdentity names this process in a Lease: the pod or host for people, a part that no other process has, and the
// address at which other replicas reach it.
func newIdentity(conf *config.Config, environ []string, advertise string) string {
	name := cmp.Or(conf.LeaderElection.Identity, config.Lookup(environ, "POD_NAME"))
	if name == "" {
		name, _ = os.Hostname()
	}
	return leadership.NewIdentity(name, advertise)
}

// writeTimeout is how long a write to a member may take. The fence lets writes pass only that long before the Lease ends,
// so it must leave room between two renewals.
func writeTimeout(config *config.Config) time.Duration {
	if !config.LeaderElection.Enabled {
		return config.Clusters.RequestTimeout
	}
	return min(config.Clusters.RequestTimeout, config.LeaderElection.LeaseDuration/3)
}

// leaseOptions are those of the Lease, but for what is only known when the hub runs.
func leaseOptions(config *config.Config) leadership.Options {
	election := &config.LeaderElection
	return leadership.Options{
		Namespace: election.LeaseNamespace, Name: election.LeaseName,
		LeaseDuration: election.LeaseDuration, RenewDeadline: election.RenewDeadline, RetryPeriod: election.RetryPeriod,
		WriteTimeout: writeTimeout(config), WarmTime: config.Clusters.WarmTimeout,
	}
}
