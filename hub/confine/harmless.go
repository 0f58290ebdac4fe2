package confine

import "strings"

// harmless is true for a pod, or a template of pods, that reaches nothing of its node: it keeps to the Pod Security Standard baseline,
// with no capability and no sysctl more than any pod has, and chooses no node. Like the baseline it may run as root. HostProcess
// containers are not mentioned: they need the node's network.
func harmless(pod string) string {
	spec, annotations := pod+".spec", pod+".?metadata.?annotations.orValue({})"
	return strings.Join([]string{
		"!" + spec + ".?hostNetwork.orValue(false)", "!" + spec + ".?hostPID.orValue(false)", "!" + spec + ".?hostIPC.orValue(false)",
		"!has(" + spec + ".nodeName)", "size(" + spec + ".?securityContext.?sysctls.orValue([])) == 0", shielded(spec + ".?securityContext"),
		// An API server makes a profile of what this annotation says.
		annotations + `.all(k, !k.startsWith("container.apparmor.security.beta.kubernetes.io/") || ` + annotations + `[k] != "unconfined")`,
		// Not of both lists together: to API servers, which check types, they are of different ones.
		spec + ".?containers.orValue([]).all(c, " + harmlessContainer("c") + ")", spec + ".?initContainers.orValue([]).all(c, " + harmlessContainer("c") + ")",
	}, " && ")
}

func harmlessContainer(c string) string {
	context := c + ".?securityContext"
	terms := []string{
		"!" + context + ".?privileged.orValue(false)", "size(" + context + ".?capabilities.?add.orValue([])) == 0",
		context + `.?procMount.orValue("Default") == "Default"`, c + ".?ports.orValue([]).all(p, p.?hostPort.orValue(0) == 0)", shielded(context),
	}
	// The kubelet calls these from the node's network.
	for _, handler := range []string{"livenessProbe", "readinessProbe", "startupProbe", "lifecycle.?postStart", "lifecycle.?preStop"} {
		for _, call := range []string{"httpGet", "tcpSocket"} {
			terms = append(terms, c+".?"+handler+".?"+call+`.?host.orValue("") == ""`)
		}
	}
	return strings.Join(terms, " && ")
}

// shielded is true for a security context, of a pod or a container, that keeps what shields the node from any pod. A level of SELinux is
// what OpenShift gives each pod.
func shielded(context string) string {
	return strings.Join([]string{
		context + `.?seccompProfile.?type.orValue("") != "Unconfined"`, context + `.?appArmorProfile.?type.orValue("") != "Unconfined"`,
		context + `.?seLinuxOptions.?type.orValue("") in ` + list("", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"),
		context + `.?seLinuxOptions.?user.orValue("") == ""`, context + `.?seLinuxOptions.?role.orValue("") == ""`,
	}, " && ")
}
