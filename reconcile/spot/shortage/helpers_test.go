package shortage

import (
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

var testKeys = policy.Keys{Prefix: policy.DefaultPrefix}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
