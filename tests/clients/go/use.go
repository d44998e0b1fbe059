// Uses the generated Go client; prints the answers as JSON.
package main

import (
	"context"
	"encoding/json"
	"log"
	"net/http"
	"os"
)

func must[T any](answer T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return answer
}

func main() {
	ctx := context.Background()
	api := must(NewClientWithResponses(os.Getenv("API"), WithRequestEditorFn(
		func(_ context.Context, request *http.Request) error {
			request.Header.Set("Authorization", "Bearer "+os.Getenv("TOKEN"))
			return nil
		})))
	name := "slow"
	armed := must(api.InjectWithResponse(ctx, "d", Inject{Rule: "-D 10ms:1 -T read", Name: &name}))
	if armed.JSON201 == nil {
		log.Fatal(string(armed.Body))
	}
	var exports, rules []string
	for _, export := range *must(api.ListExportsWithResponse(ctx)).JSON200 {
		exports = append(exports, export.Name)
	}
	for _, rule := range *must(api.ListRulesWithResponse(ctx, nil)).JSON200 {
		rules = append(rules, rule.Rule)
	}
	var reads any
	for _, op := range must(api.GetDiskLatencyWithResponse(ctx, "d", nil)).JSON200.Ops {
		if op.Op == "read" {
			reads = op.Disk
		}
	}
	clock := must(api.GetClockWithResponse(ctx)).JSON200
	json.NewEncoder(os.Stdout).Encode(map[string]any{
		"exports":    exports,
		"refused":    must(api.GetDiskWithResponse(ctx, "nothing", nil)).JSON404.Error,
		"rules":      rules,
		"now_ns":     clock.NowNs,
		"started_ns": clock.StartedNs,
		"reads":      reads,
	})
	must(api.ClearRulesWithResponse(ctx, nil))
	if left := *must(api.ListRulesWithResponse(ctx, nil)).JSON200; len(left) != 0 {
		log.Fatal("rules are left")
	}
}
