package kube

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// auditLog is the audit log's name in a cluster's folder.
const auditLog = "audit.log"

// flushTimeout bounds the wait for the audit log to have caught up.
const flushTimeout = 10 * time.Second

// An Audit reads what reached an API server, from the API server's own log: counts of writes, evictions and lists are
// taken from here and never from the counters of what is tested.
type Audit struct {
	cluster *Cluster
}

// Audit is the cluster's audit log.
func (c *Cluster) Audit() *Audit { return &Audit{cluster: c} }

// A Mark is a point in the audit log.
type Mark int64

// An AuditEvent is one request that was answered, or, for a watch and its like, one that has begun.
type AuditEvent struct {
	Verb        string // get, list, watch, create, update, patch, delete, deletecollection, connect
	User        string
	Groups      []string
	UserAgent   string
	SourceIPs   []string // where it came from, the client's first
	URI         string   // path and query
	APIGroup    string   // empty for the core group
	Resource    string   // plural; empty for a request that is for no resource
	Subresource string
	Namespace   string
	Name        string // empty for lists, and for what is created with generateName
	Code        int    // HTTP status
	Reason      string // of a failure, as in metav1.StatusReason
	Received    time.Time
	Answered    time.Time         // for a watch: begun
	Annotations map[string]string // what admission and authorization noted
}

// Mark is the log's end: of what was answered before, nothing comes after it.
func (a *Audit) Mark() (Mark, error) {
	before, err := a.flush()
	if err != nil {
		return 0, err
	}
	end, err := linesEnd(a.path(), before)
	if err != nil {
		return 0, fmt.Errorf("audit log of %s: %w", a.cluster.name, err)
	}
	return Mark(end), nil
}

// Events are the requests that pass every filter, oldest answer first.
func (a *Audit) Events(filters ...Filter) ([]AuditEvent, error) { return a.Since(0, filters...) }

// Since is like Events, for what was answered after the mark. It waits until the log holds all that was answered
// before the call; while the API server does not run, it reads what there is.
func (a *Audit) Since(mark Mark, filters ...Filter) ([]AuditEvent, error) {
	if _, err := a.flush(); err != nil {
		return nil, err
	}
	file, err := os.Open(a.path())
	if err != nil {
		return nil, fmt.Errorf("audit log of %s: %w", a.cluster.name, err)
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Seek(int64(mark), io.SeekStart); err != nil {
		return nil, fmt.Errorf("audit log of %s: %w", a.cluster.name, err)
	}
	events, err := readEvents(file, filters)
	if err != nil {
		return nil, fmt.Errorf("audit log of %s: %w", a.cluster.name, err)
	}
	return events, nil
}

func (a *Audit) path() string { return a.cluster.file(auditLog) }

// flush waits until the log holds everything that was answered before now, and returns the log's size before that. An event is written just
// after its answer, in the order of the answers but for a moment; a request of our own that shows up in the log says that it is there.
func (a *Audit) flush() (before int64, err error) {
	info, err := os.Stat(a.path())
	if err != nil {
		return 0, fmt.Errorf("audit log of %s: %w", a.cluster.name, err)
	}
	if !a.answering() {
		return info.Size(), nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	token := flushPrefix + uuid.NewString()
	key := client.ObjectKey{Namespace: "default", Name: token}
	if err := client.IgnoreNotFound(a.cluster.client.Get(ctx, key, &corev1.ConfigMap{})); err != nil {
		return 0, fmt.Errorf("audit log of %s: mark its end: %w", a.cluster.name, err)
	}
	err = wait.PollUntilContextCancel(ctx, 5*time.Millisecond, true, func(context.Context) (bool, error) {
		content, err := readFrom(a.path(), info.Size())
		return bytes.Contains(content, []byte(token)), err
	})
	if err != nil {
		return 0, fmt.Errorf("audit log of %s: wait for it to catch up: %w", a.cluster.name, err)
	}
	return info.Size(), nil
}

// flushPrefix begins the names of the objects that flush asks for, which are never there.
const flushPrefix = "audit-flush-"

// answering reports whether the API server runs and is not frozen.
func (a *Audit) answering() bool {
	p, err := a.cluster.process(APIServer)
	return err == nil && !p.Ended() && !p.Frozen()
}

// readFrom returns what a file holds after the offset.
func readFrom(path string, offset int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return nil, err
	}
	return io.ReadAll(file)
}

// linesEnd is where the last complete line of a file ends that ends after the offset, or the offset. The file can end within a line: a write
// that crosses pages of memory grows it page by page.
func linesEnd(path string, offset int64) (int64, error) {
	content, err := readFrom(path, offset)
	return offset + int64(bytes.LastIndexByte(content, '\n')) + 1, err
}

// ReadAudit reads an audit log that was fetched from wherever its API server runs. It does not wait for what the log does
// not hold yet.
func ReadAudit(from io.Reader, filters ...Filter) ([]AuditEvent, error) {
	return readEvents(from, filters)
}

// readEvents parses one event per line. A last line that is not complete yet is left for the next reader.
func readEvents(from io.Reader, filters []Filter) ([]AuditEvent, error) {
	var events []AuditEvent
	lines := bufio.NewReaderSize(from, 64<<10)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return nil, err
		}
		event, ok, err := parseEvent(line)
		if err != nil {
			return nil, err
		}
		if ok && All(filters...)(event) {
			events = append(events, event)
		}
	}
}

// rawEvent is what we read of the API server's audit.k8s.io/v1 Event.
type rawEvent struct {
	Stage      string `json:"stage"`
	RequestURI string `json:"requestURI"`
	Verb       string `json:"verb"`
	User       struct {
		Username string   `json:"username"`
		Groups   []string `json:"groups"`
	} `json:"user"`
	UserAgent string   `json:"userAgent"`
	SourceIPs []string `json:"sourceIPs"`
	ObjectRef struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
		APIGroup    string `json:"apiGroup"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code   int    `json:"code"`
		Reason string `json:"reason"`
	} `json:"responseStatus"`
	RequestReceivedTimestamp time.Time         `json:"requestReceivedTimestamp"`
	StageTimestamp           time.Time         `json:"stageTimestamp"`
	Annotations              map[string]string `json:"annotations"`
}

// parseEvent reads a line. It is not ok for what would count a request twice, and for our own flushes.
func parseEvent(line []byte) (AuditEvent, bool, error) {
	var raw rawEvent
	if err := json.Unmarshal(line, &raw); err != nil {
		return AuditEvent{}, false, fmt.Errorf("parse an event: %w", err)
	}
	// A request that lasts is logged when it begins and when it ends.
	if raw.Stage == "ResponseComplete" && raw.lasts() || strings.HasPrefix(raw.ObjectRef.Name, flushPrefix) {
		return AuditEvent{}, false, nil
	}
	return AuditEvent{
		Verb: raw.Verb, User: raw.User.Username, Groups: raw.User.Groups, UserAgent: raw.UserAgent, SourceIPs: raw.SourceIPs, URI: raw.RequestURI,
		APIGroup: raw.ObjectRef.APIGroup, Resource: raw.ObjectRef.Resource, Subresource: raw.ObjectRef.Subresource,
		Namespace: raw.ObjectRef.Namespace, Name: raw.ObjectRef.Name,
		Code: raw.ResponseStatus.Code, Reason: raw.ResponseStatus.Reason,
		Received: raw.RequestReceivedTimestamp, Answered: raw.StageTimestamp, Annotations: raw.Annotations,
	}, true, nil
}

// lasts reports whether the API server counts the request among those that stay open.
func (e rawEvent) lasts() bool {
	switch e.Verb {
	case "watch", "proxy":
		return true
	}
	switch e.ObjectRef.Subresource {
	case "attach", "exec", "proxy", "log", "portforward":
		return true
	}
	return false
}
