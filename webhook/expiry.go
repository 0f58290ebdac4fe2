package webhook

import "time"

// Expiry is when the authority's own certificate ends, and with it everything that it has issued.
func (ca *CA) Expiry() time.Time { return ca.cert.NotAfter }
