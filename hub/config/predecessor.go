package config

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// predecessorPage has the table that users of Spotalis find their keys in; a test compares it with predecessorKeys.
const predecessorPage = "docs/migrate.md"

// predecessorKeys says for each key of a configuration file of Spotalis what takes its place here.
var predecessorKeys = []struct{ key, here string }{
	{"operator.namespace", "`hub.namespace`"},
	{"operator.readOnlyMode", "`spot.readOnly`"},
	{"operator.leaderElection.enabled", "`leaderElection.enabled`"},
	{"operator.leaderElection.id", "`leaderElection.leaseName`"},
	{"operator.leaderElection.leaseDuration", "`leaderElection.leaseDuration`"},
	{"operator.disruptionWindow.schedule", "`spot.defaults.disruptionSchedule`"},
	{"operator.disruptionWindow.duration", "`spot.defaults.disruptionDuration`"},
	{"controllers.maxConcurrentReconciles", "`controller.workers`"},
	{"controllers.reconcileInterval", "`controller.resyncPeriod`"},
	{"controllers.nodeClassifier.spotLabels", "`spot.nodeLabels`, with the values under `spot`"},
	{"controllers.nodeClassifier.onDemandLabels", "`spot.nodeLabels`, with the values under `onDemand`"},
	{"controllers.workloadTiming.cooldownPeriod", "`spot.moveCooldown`"},
	{"controllers.workloadTiming.disruptionRetryInterval", "nothing: the hub knows when a window opens"},
	{"controllers.workloadTiming.disruptionWindowPollInterval", "nothing: the hub knows when a window opens"},
	{"webhook.enabled", "nothing: a member has no webhook until `plimsoll register` creates its configuration"},
	{"observability.metrics.enabled", "`metrics.address`"},
	{"observability.metrics.bindAddress", "`metrics.address`"},
	{"observability.logging.level", "`log.level`"},
	{"observability.logging.format", "`log.format`; `console` is `text`"},
	{"observability.logging.output", "nothing: logs go to standard error"},
	{"observability.logging.addCaller", "nothing"},
	{"observability.logging.development", "nothing"},
	{"observability.health.enabled", "`probes.address`"},
	{"observability.health.bindAddress", "`probes.address`"},
}

// refusePredecessor refuses what stands at path and below it when these are keys of Spotalis, each with what takes its place; false:
// they are not. A file is not translated silently, for the meaning of some values is not the same.
func (d *decoder) refusePredecessor(path string, node *yaml.Node) bool {
	for _, known := range predecessorKeys {
		if known.key == path {
			d.refuse(path, node, "a key of Spotalis; instead of it: %s (%s)", strings.ReplaceAll(known.here, "`", ""), predecessorPage)
			return true
		}
	}
	if node.Kind != yaml.MappingNode || !isPredecessorSection(path) {
		return false
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		below := join(path, node.Content[i].Value)
		if !d.refusePredecessor(below, node.Content[i+1]) {
			d.refuse(below, node.Content[i+1], "unknown key, below a key of Spotalis (%s)", predecessorPage)
		}
	}
	if len(node.Content) == 0 {
		d.refuse(path, node, "a section of Spotalis (%s)", predecessorPage)
	}
	return true
}

func isPredecessorSection(path string) bool {
	for _, known := range predecessorKeys {
		if strings.HasPrefix(known.key, path+".") {
			return true
		}
	}
	return false
}
