package main

// failed are the gRPC codes that are the hub's fault; others are what the caller asked for.
const failed = `code=~"Internal|Unavailable|DeadlineExceeded|Unknown"`

var api = board{
	name: "api", title: "Plimsoll / API",
	about:     "Calls of the gRPC and REST API. What replicas ask each other is not counted.",
	variables: []variable{ofJob},
	rows: []row{
		{"Now", []panel{
			{kind: number, title: "Calls", about: "Answered calls.", unit: perSecond,
				queries: one(`sum(rate(plimsoll_api_requests_total{`+ofHub+`}[$__rate_interval]))`, "calls")},
			{kind: number, title: "Share that fails", about: "Codes Internal, Unavailable, DeadlineExceeded and Unknown.", unit: share, red: 0.05,
				queries: one(`(sum(rate(plimsoll_api_requests_total{`+ofHub+`,`+failed+`}[$__rate_interval])) or vector(0)) / sum(rate(plimsoll_api_requests_total{`+ofHub+`}[$__rate_interval]))`, "failed")},
			{kind: number, title: "99th percentile", about: "Of the time to an answer, waiting for operations included.", unit: seconds,
				queries: one(`histogram_quantile(0.99, sum by (le) (rate(plimsoll_api_request_duration_seconds_bucket{`+ofHub+`}[$__rate_interval])))`, "99 %")},
			{kind: number, title: "Refused", about: "Calls in the time shown without a valid token or without the right.",
				queries: one(orZero(`sum(increase(plimsoll_api_requests_total{`+ofHub+`,code=~"Unauthenticated|PermissionDenied"}[$__range]))`), "refused")},
		}},
		{"Calls", []panel{
			{title: "By method", about: "REST calls have the method of gRPC that they lead to.", unit: perSecond,
				queries: one(rate("method", `plimsoll_api_requests_total{`+ofHub+`}`), "{{method}}")},
			{title: "By code", about: "gRPC codes; OK is success.", unit: perSecond,
				queries: one(rate("code", `plimsoll_api_requests_total{`+ofHub+`}`), "{{code}}")},
			{title: "By replica", about: "Clients keep connections, so one replica may have more than its share.", unit: perSecond,
				queries: one(rate("instance", `plimsoll_api_requests_total{`+ofHub+`}`), "{{instance}}")},
			{title: "Time of calls", about: "By method. GetOperation takes as long as the reconcile that it waits for.", unit: seconds, wide: true,
				queries: quantiles("method", "plimsoll_api_request_duration_seconds", ofHub)},
		}},
	},
}
