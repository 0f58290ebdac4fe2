package main

const ofHub = `job=~"$job"`

var hub = board{
	name: "hub", title: "Plimsoll / Hub",
	about:     "The hub's replicas: who acts, how they keep up, and what they serve.",
	variables: []variable{ofJob},
	rows: []row{
		{"Who acts", []panel{
			{title: "Replica that acts", about: "1 for the replica that holds the Lease.", unit: count,
				queries: one(`max by (instance) (plimsoll_owner{`+ofHub+`})`, "{{instance}}")},
			{title: "Hand-overs", about: "How often a replica began to act, in the time of a point.", unit: count,
				queries: one(`sum by (instance) (increase(plimsoll_handovers_total{`+ofHub+`}[$__rate_interval]))`, "{{instance}}")},
			{kind: number, title: "Longest hand-over", about: "99th percentile, in the time shown, of how long nobody may have acted.", unit: seconds,
				queries: one(`histogram_quantile(0.99, sum by (le) (increase(plimsoll_handover_seconds_bucket{`+ofHub+`}[$__range])))`, "99 %")},
			{kind: number, title: "Replicas scraped", about: "Replicas that Prometheus reaches.",
				queries: one(`sum(up{`+ofHub+`})`, "up")},
			{kind: number, title: "Next certificate expires in", about: "Of the webhook, the API, the metrics and the hub's authority. The hub renews its own.", unit: seconds,
				queries: one(`min(plimsoll_certificate_expiry_timestamp_seconds{`+ofHub+`}) - time()`, "left")},
			{kind: number, title: "Refused registrations", about: "In the time shown. Events of the Secret say what is wrong.", red: 1,
				queries: one(orZero(`sum(increase(plimsoll_member_refused_total{`+ofHub+`}[$__range]))`), "refused")},
		}},
		{"Reconciles", []panel{
			{title: "Reconciles", about: "That ended, by controller.", unit: perSecond,
				queries: one(rate("controller", `plimsoll_reconcile_total{`+ofHub+`}`), "{{controller}}")},
			{title: "Share that fails", about: "Of the reconciles of a controller.", unit: share,
				queries: one(rate("controller", `plimsoll_reconcile_errors_total{`+ofHub+`}`)+" / "+rate("controller", `plimsoll_reconcile_total{`+ofHub+`}`), "{{controller}}")},
			{title: "Time of reconciles", about: "How long a reconcile takes.", unit: seconds,
				queries: quantiles("controller", "plimsoll_reconcile_duration_seconds", ofHub)},
			{title: "Wait in the queue", about: "ordered: by a person. changed: an object changed. background: first sight and resync.", unit: seconds,
				queries: quantiles("priority", "plimsoll_queue_wait_seconds", ofHub)},
			{title: "Queue by member", about: "Keys that are queued or held at the replica that acts.", unit: count,
				queries: one("sum by (member) ("+owned(`plimsoll_queue_depth{`+ofHub+`}`)+")", "{{member}}")},
			{title: "Stuck, panicked and overdue", about: "Panics are caught; the log has the stack.", unit: count, red: 1,
				queries: []query{
					{`sum by (member) (plimsoll_reconcile_stuck{` + ofHub + `})`, "{{member}} stuck"},
					{`sum by (member) (increase(plimsoll_reconcile_panics_total{` + ofHub + `}[$__rate_interval]))`, "{{member}} panicked"},
					{`sum by (member) (` + owned(`plimsoll_finalizers_overdue{`+ofHub+`}`) + `)`, "{{member}} overdue"},
				}},
		}},
		{"Calls of members", []panel{
			{title: "Admissions by outcome", about: "A call that was forwarded is counted by the owner as well.", unit: perSecond,
				queries: one(rate("outcome", `plimsoll_admissions_total{`+ofHub+`}`), "{{outcome}}")},
			{title: "Time of admissions", about: "From the head of a call to its answer.", unit: seconds,
				queries: quantiles("", "plimsoll_admission_duration_seconds", ofHub)},
			{title: "Rejected calls", about: "Calls that were no admission calls of a member, for instance with a wrong token.", unit: perSecond,
				queries: one(rate("reason", `plimsoll_admission_rejected_total{`+ofHub+`}`), "{{reason}}")},
			{title: "Calls about kinds of modules", about: "Conversions, defaults and validations.", unit: perSecond,
				queries: one(rate("kind, call, outcome", `plimsoll_kind_calls_total{`+ofHub+`}`), "{{kind}} {{call}} {{outcome}}")},
		}},
	},
}
