package main

// chosen are the matchers of the workloads that are chosen.
const chosen = of + `,namespace=~"$namespace",name=~"$name"`

var placement = board{
	name: "placement", title: "Plimsoll / Placement",
	about:     "Workloads: where their replicas are, where they should be, and what is done about it. `plimsoll explain` says why.",
	variables: []variable{ofJob, ofMembers, ofNamespace, ofWorkload},
	rows: []row{
		{"Replicas", []panel{
			{title: "Actual", about: "Replicas by capacity type.", unit: count, stacked: true,
				queries: one("sum by (capacity) ("+owned(`plimsoll_workload_replicas{`+chosen+`,count="actual"}`)+")", "{{capacity}}")},
			{title: "Wanted", about: "What the policies want.", unit: count, stacked: true,
				queries: one("sum by (capacity) ("+owned(`plimsoll_workload_replicas{`+chosen+`,count="wanted"}`)+")", "{{capacity}}")},
			{title: "Misplaced", about: "Replicas on the other capacity type; 0 while the workload is paused, read-only or outside its window.", unit: count,
				queries: one("sum by (member, namespace, name) ("+owned(`plimsoll_workload_misplaced{`+chosen+`}`)+")", "{{member}} {{namespace}}/{{name}}")},
			{title: "Missing of the floor", about: "On-demand replicas that are missing of min-on-demand.", unit: count, red: 1,
				queries: one("sum by (member, namespace, name) ("+owned(`plimsoll_workload_floor_missing{`+chosen+`}`)+")", "{{member}} {{namespace}}/{{name}}")},
			{kind: columns, title: "Workloads", about: "Actual and wanted replicas of each workload that is chosen. _other adds up those beyond metrics.workloadsPerMember.", wide: true,
				queries: []query{
					{"sum by (member, namespace, kind, name) (" + owned(`plimsoll_workload_replicas{`+chosen+`,capacity="spot",count="actual"}`) + ")", "spot"},
					{"sum by (member, namespace, kind, name) (" + owned(`plimsoll_workload_replicas{`+chosen+`,capacity="spot",count="wanted"}`) + ")", "spot wanted"},
					{"sum by (member, namespace, kind, name) (" + owned(`plimsoll_workload_replicas{`+chosen+`,capacity="on-demand",count="actual"}`) + ")", "on-demand"},
					{"sum by (member, namespace, kind, name) (" + owned(`plimsoll_workload_replicas{`+chosen+`,capacity="on-demand",count="wanted"}`) + ")", "on-demand wanted"},
					{"sum by (member, namespace, kind, name) (" + owned(`plimsoll_workload_misplaced{`+chosen+`}`) + ")", "misplaced"},
				}},
		}},
		{"Capacity", []panel{
			{title: "Requirements without room", about: "Shapes of pods for which a capacity type of a member has no room.", unit: count, red: 1,
				queries: one("max by (member, capacity) ("+owned(`plimsoll_spot_dry{`+of+`}`)+")", "{{member}} {{capacity}}")},
			{title: "Reservations", about: "Slots reserved for pods that were admitted and are not in the cache yet. Those that stay are of pods that were never created.", unit: count,
				queries: one("sum by (member) ("+owned(`plimsoll_reservations_live{`+of+`}`)+")", "{{member}}")},
			{title: "Moves", about: "Pods that were moved for the mix, each minute.", unit: perMinute,
				queries: one("60 * "+rate("member", `plimsoll_moves_total{`+of+`}`), "{{member}}")},
			{title: "Replacements", about: "interruption and advisory: the node goes, or may go. insufficient-capacity: the capacity has no room.", unit: perMinute,
				queries: one("60 * "+rate("member, for", `plimsoll_replacements_total{`+of+`}`), "{{member}} {{for}}")},
		}},
		{"Decisions", []panel{
			{title: "Admissions by outcome", about: "Where new pods were sent. no_owner, timeout and error: let through without a place.", unit: perSecond,
				queries: one(rate("outcome", `plimsoll_admissions_total{`+of+`}`), "{{outcome}}")},
			{title: "Undecided pods", about: "Pods of enabled workloads that came without a decision, each minute.", unit: perMinute,
				queries: one("60 * "+rate("member", `plimsoll_pods_undecided_total{`+of+`}`), "{{member}}")},
			{title: "Time of admissions", about: "From the head of a call to its answer.", unit: seconds,
				queries: quantiles("", "plimsoll_admission_duration_seconds", of)},
			{title: "Time of a plan", about: "Of one workload, in all members.", unit: seconds,
				queries: quantiles("", "plimsoll_plan_seconds", `job=~"$job"`)},
		}},
	},
}
