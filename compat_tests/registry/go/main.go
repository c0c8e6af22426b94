// What users of franz-go's registry client do: every call of it once, and a value encoded and decoded.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/twmb/franz-go/pkg/sr"
)

const (
	narrow = `{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}`
	wide   = `{"type":"record","name":"Order","fields":[{"name":"id","type":"long"},{"name":"n","type":"string"}]}`
	inner  = `{"type":"record","name":"Inner","fields":[{"name":"x","type":"int"}]}`
	outer  = `{"type":"record","name":"Outer","fields":[{"name":"i","type":"Inner"}]}`
)

func check(err error) {
	if err != nil {
		fmt.Println("FAIL", err)
		os.Exit(1)
	}
}

func hold(is bool, what string) {
	if !is {
		check(errors.New(what))
	}
	fmt.Println("ok", what)
}

func main() {
	ctx := context.Background()
	client, err := sr.NewClient(sr.URLs(os.Args[1]))
	check(err)
	types, err := client.SupportedTypes(ctx)
	check(err)
	hold(len(types) == 3, "supported types")

	first, err := client.CreateSchema(ctx, "go-orders-value", sr.Schema{Schema: narrow})
	check(err)
	hold(first.Version == 1 && first.Subject == "go-orders-value", "create")
	found, err := client.LookupSchema(ctx, "go-orders-value", sr.Schema{Schema: narrow})
	check(err)
	hold(found.ID == first.ID, "look up")
	byID, err := client.SchemaByID(ctx, first.ID)
	check(err)
	text, err := client.SchemaTextByID(ctx, first.ID)
	check(err)
	hold(byID.Schema == narrow && text == narrow, "by id")
	usages, err := client.SchemaUsagesByID(ctx, first.ID)
	check(err)
	hold(len(usages) == 1, "usages by id")

	compared, err := client.CheckCompatibility(ctx, "go-orders-value", -1, sr.Schema{Schema: wide})
	check(err)
	hold(!compared.Is, "compatibility is checked")
	_, err = client.CreateSchema(ctx, "go-orders-value", sr.Schema{Schema: wide})
	var refused *sr.ResponseError
	hold(errors.As(err, &refused) && refused.StatusCode == 409, "an incompatible schema is refused")
	set := client.SetCompatibility(ctx, sr.SetCompatibility{Level: sr.CompatNone}, "go-orders-value")
	check(set[0].Err)
	hold(client.Compatibility(ctx, "go-orders-value")[0].Level == sr.CompatNone, "compatibility is set")
	second, err := client.CreateSchema(ctx, "go-orders-value", sr.Schema{Schema: wide})
	check(err)
	hold(second.Version == 2, "a second version")
	versions, err := client.SubjectVersions(ctx, "go-orders-value")
	check(err)
	hold(len(versions) == 2, "versions")
	check(client.ResetCompatibility(ctx, "go-orders-value")[0].Err)

	_, err = client.CreateSchema(ctx, "go-inner", sr.Schema{Schema: inner})
	check(err)
	reference := sr.SchemaReference{Name: "Inner", Subject: "go-inner", Version: 1}
	_, err = client.CreateSchema(ctx, "go-outer", sr.Schema{Schema: outer, References: []sr.SchemaReference{reference}})
	check(err)
	referrers, err := client.SchemaReferences(ctx, "go-inner", 1)
	check(err)
	hold(len(referrers) == 1 && referrers[0].Subject == "go-outer", "references")

	check(client.SetMode(ctx, sr.ModeReadOnly, "go-inner")[0].Err)
	hold(client.Mode(ctx, "go-inner")[0].Mode == sr.ModeReadOnly, "mode")
	check(client.ResetMode(ctx, "go-inner")[0].Err)
	contexts, err := client.Contexts(ctx)
	check(err)
	hold(len(contexts) >= 1, "contexts")
	all, err := client.AllSchemas(ctx)
	check(err)
	hold(len(all) >= 4, "all schemas")

	var serde sr.Serde
	serde.Register(first.ID, int64(0),
		sr.EncodeFn(func(v any) ([]byte, error) { return []byte(fmt.Sprint(v)), nil }),
		sr.DecodeFn(func(b []byte, v any) error { _, err := fmt.Sscan(string(b), v.(*int64)); return err }))
	data, err := serde.Encode(int64(7))
	check(err)
	var back int64
	check(serde.Decode(data, &back))
	hold(back == 7, "a value with its header")

	gone, err := client.DeleteSubject(ctx, "go-orders-value", sr.SoftDelete)
	check(err)
	_, err = client.DeleteSubject(ctx, "go-orders-value", sr.HardDelete)
	check(err)
	hold(len(gone) == 2, "delete")
	_, err = client.SubjectVersions(ctx, "go-orders-value")
	hold(errors.As(err, &refused) && refused.ErrorCode == 40401, "what is gone is not found")
}
