package fleet

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Sample is one value of a metric.
type Sample struct {
	// Labels as they are written, between the braces.
	Labels string
	Value  float64
}

// Has reports whether the sample has a label with this value.
func (s Sample) Has(label, value string) bool {
	return strings.Contains(","+s.Labels, ","+label+"="+strconv.Quote(value))
}

// Samples reads a replica's /metrics; the result is by metric name.
func (r *Replica) Samples(ctx context.Context) (map[string][]Sample, error) {
	scraper, err := r.fleet.scraper(ctx)
	if err != nil {
		return nil, fmt.Errorf("metrics of hub %s: %w", r.Name, err)
	}
	samples, err := scraper.Samples(ctx, r.Metrics)
	if err != nil {
		return nil, fmt.Errorf("metrics of hub %s: %w", r.Name, err)
	}
	return samples, nil
}

// Samples reads the /metrics of a replica at host and port; the result is by metric name.
func (s *Scraper) Samples(ctx context.Context, address string) (map[string][]Sample, error) {
	response, err := s.get(ctx, address)
	if err != nil {
		return nil, err
	}
	return samplesIn(response)
}

// OpenSamples reads the /metrics of a replica that is configured to show them to everybody, at host and port.
func OpenSamples(ctx context.Context, address string) (map[string][]Sample, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	return samplesIn(response)
}

// samplesIn reads an answer and closes its body.
func samplesIn(response *http.Response) (map[string][]Sample, error) {
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, errors.New(response.Status)
	}
	samples := map[string][]Sample{}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if name, sample, ok := parseSample(lines.Text()); ok {
			samples[name] = append(samples[name], sample)
		}
	}
	return samples, lines.Err()
}

// parseSample reads a line of the text format: name{labels} value. Comments are not ok.
func parseSample(line string) (name string, sample Sample, ok bool) {
	if strings.HasPrefix(line, "#") {
		return "", Sample{}, false
	}
	cut := strings.LastIndexByte(line, ' ')
	if cut < 0 {
		return "", Sample{}, false
	}
	value, err := strconv.ParseFloat(line[cut+1:], 64)
	if err != nil {
		return "", Sample{}, false
	}
	name, labels, _ := strings.Cut(line[:cut], "{")
	return name, Sample{Labels: strings.TrimSuffix(labels, "}"), Value: value}, true
}

// Sum adds up the values of a metric.
func Sum(samples []Sample) float64 {
	sum := 0.0
	for _, s := range samples {
		sum += s.Value
	}
	return sum
}

// Quantile reads a histogram: the bound of the bucket that the quantile falls into, over all samples of the metric's
// _bucket series that pass. +Inf when it is above all bounds, or there is nothing.
func Quantile(buckets []Sample, q float64, pass func(Sample) bool) float64 {
	counts := map[float64]float64{}
	for _, sample := range buckets {
		if !pass(sample) {
			continue
		}
		_, text, _ := strings.Cut(sample.Labels, `le="`)
		text, _, _ = strings.Cut(text, `"`)
		if bound, err := strconv.ParseFloat(text, 64); err == nil {
			counts[bound] += sample.Value
		}
	}
	bounds := slices.Sorted(maps.Keys(counts))
	for _, bound := range bounds {
		if all := counts[bounds[len(bounds)-1]]; all > 0 && counts[bound] >= q*all {
			return bound
		}
	}
	return math.Inf(1)
}
