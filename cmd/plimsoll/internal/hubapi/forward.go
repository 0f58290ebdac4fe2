package hubapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// forward opens a port of this machine that leads to gRPC of a pod of the hub, and returns its address and what closes it.
func (c *Cluster) forward(ctx context.Context) (string, func(), error) {
	pod, port, err := c.pod(ctx)
	if err != nil {
		return "", nil, err
	}
	dialer, err := c.dialer(pod)
	if err != nil {
		return "", nil, c.failed("forward a port", err)
	}
	address, stop, err := forwardPort(ctx, dialer, port)
	if err != nil {
		return "", nil, c.failed("forward a port to pod/"+c.namespace+"/"+pod, err)
	}
	return address, stop, nil
}

// forwardPort opens a port of this machine that leads to one of the pod that the dialer reaches. From the call that closes it on, client-go
// reports no errors of this process: the connections through the port and the one to the pod then end in any order, and each fails to write to
// one that has ended. It sets client-go's error handlers, so a process forwards one port at a time.
func forwardPort(ctx context.Context, dialer httpstream.Dialer, port int32) (address string, stop func(), err error) {
	stopped, ready, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	forwarder, err := portforward.NewOnAddressesForStreaming(dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", port)}, stopped, ready, io.Discard, io.Discard)
	if err != nil {
		return "", nil, err
	}
	reportUntil(stopped)
	go func() { ended <- forwarder.ForwardPorts() }()
	stop = func() {
		close(stopped)
		<-ended //nolint:errcheck // it was asked to end
	}
	select {
	case err := <-ended:
		return "", nil, err
	case <-ctx.Done():
		close(stopped) // it may still be dialing, for as long as it likes
		return "", nil, ctx.Err()
	case <-ready:
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		stop()
		return "", nil, err
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(int(ports[0].Local))), stop, nil
}

// reportUntil has client-go report errors only until a port is no longer forwarded.
func reportUntil(stopped <-chan struct{}) {
	handlers := slices.Clone(utilruntime.ErrorHandlers)
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{func(ctx context.Context, err error, message string, keysAndValues ...any) {
		select {
		case <-stopped:
			return
		default:
		}
		for _, handle := range handlers {
			handle(ctx, err, message, keysAndValues...)
		}
	}}
}

// dialer reaches a pod as kubectl does: through a WebSocket, or through SPDY where the cluster or a proxy before it takes no WebSocket.
func (c *Cluster) dialer(pod string) (httpstream.Dialer, error) {
	config := rest.CopyConfig(c.config)
	config.Timeout = 0 // of a request; this one lasts
	at := c.core.RESTClient().Post().Namespace(c.namespace).Resource("pods").Name(pod).SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, err
	}
	overSPDY := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, at)
	overWebSocket, err := portforward.NewSPDYOverWebsocketDialerForStreaming(at, config)
	if err != nil {
		return nil, err
	}
	return portforward.NewFallbackDialerForStreaming(overWebSocket, overSPDY, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	}), nil
}

// pod returns a ready pod behind the Service of the API, and its port of gRPC.
func (c *Cluster) pod(ctx context.Context) (name string, port int32, err error) {
	service, err := c.core.Services(c.namespace).Get(ctx, Service, metav1.GetOptions{})
	if err != nil {
		return "", 0, c.failed("read service/"+c.namespace+"/"+Service, err)
	}
	if len(service.Spec.Selector) == 0 {
		return "", 0, c.failed("read service/"+c.namespace+"/"+Service, errors.New("it selects no pods"))
	}
	pods, err := c.core.Pods(c.namespace).List(ctx, metav1.ListOptions{LabelSelector: labels.SelectorFromSet(service.Spec.Selector).String()})
	if err != nil {
		return "", 0, c.failed("list the hub's pods", err)
	}
	for i := range pods.Items {
		if pod := &pods.Items[i]; pod.DeletionTimestamp == nil && isReady(pod) {
			if port := portOf(service, pod); port > 0 {
				return pod.Name, port, nil
			}
		}
	}
	return "", 0, c.failed("find the hub", fmt.Errorf("none of the %d pods of service/%s/%s is ready and serves port %s", len(pods.Items), c.namespace, Service, GRPCPort))
}

func isReady(pod *corev1.Pod) bool {
	for _, is := range pod.Status.Conditions {
		if is.Type == corev1.PodReady {
			return is.Status == corev1.ConditionTrue
		}
	}
	return false
}

// portOf is where a pod serves gRPC, as the Service says; 0: nowhere.
func portOf(service *corev1.Service, pod *corev1.Pod) int32 {
	for _, port := range service.Spec.Ports {
		switch {
		case port.Name != GRPCPort:
		case port.TargetPort.Type == intstr.Int:
			return port.TargetPort.IntVal
		default:
			return named(pod, port.TargetPort.StrVal)
		}
	}
	return 0
}

func named(pod *corev1.Pod, name string) int32 {
	for _, container := range pod.Spec.Containers {
		for _, port := range container.Ports {
			if port.Name == name {
				return port.ContainerPort
			}
		}
	}
	return 0
}
