// Logins: every mechanism over TLS, and a certificate; each writes and reads as the user who has the rights.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// What SECURE names: see ../../README.md.
type settings struct {
	SaslSsl     string `json:"sasl_ssl"`
	Ssl         string
	Authority   string
	Key         string
	Certificate string
	User        string
	Password    string
	Token       string
}

func secure() {
	data, err := os.ReadFile(os.Getenv("SECURE"))
	must(err)
	var given settings
	must(json.Unmarshal(data, &given))
	authority, err := os.ReadFile(given.Authority)
	must(err)
	pool := x509.NewCertPool()
	want(pool.AppendCertsFromPEM(authority), "no certificate in %s", given.Authority)
	over := func(seed string, config *tls.Config, opts ...kgo.Opt) []kgo.Opt {
		return append([]kgo.Opt{kgo.SeedBrokers(seed), kgo.DialTLSConfig(config)}, opts...)
	}
	by := func(mechanism sasl.Mechanism) []kgo.Opt {
		return over(given.SaslSsl, &tls.Config{RootCAs: pool}, kgo.SASL(mechanism))
	}
	login := scram.Auth{User: given.User, Pass: given.Password}
	for _, m := range []sasl.Mechanism{
		login.AsSha512Mechanism(), login.AsSha256Mechanism(),
		plain.Auth{User: given.User, Pass: given.Password}.AsMechanism(),
		oauth.Auth{Token: given.Token}.AsMechanism(),
	} {
		step(m.Name()+" over TLS", func() { roundTrip(m.Name(), by(m)) })
	}
	step("a certificate", func() {
		pair, err := tls.LoadX509KeyPair(given.Certificate, given.Key)
		must(err)
		roundTrip("certificate", over(given.Ssl, &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}))
	})
	step("a wrong password is refused", func() {
		wrong := scram.Auth{User: given.User, Pass: "wrong"}
		for _, m := range []sasl.Mechanism{wrong.AsSha512Mechanism(), plain.Auth{User: given.User, Pass: "wrong"}.AsMechanism()} {
			cl := client(by(m)...)
			err := cl.Ping(ctx)
			want(errors.Is(err, kerr.SaslAuthenticationFailed), "%s: %v", m.Name(), err)
			cl.Close()
		}
	})
	step("a broker that nobody vouches for", func() {
		cl := client(over(given.SaslSsl, &tls.Config{}, kgo.SASL(login.AsSha512Mechanism()))...)
		defer cl.Close()
		quick, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		err := cl.Ping(quick)
		var unknown x509.UnknownAuthorityError
		want(errors.As(err, &unknown), "%v", err)
	})
}

func roundTrip(name string, login []kgo.Opt) {
	topic := run + "-" + name
	p := client(append(login, kgo.DefaultProduceTopic(topic), kgo.AllowAutoTopicCreation())...)
	for i := range 100 {
		p.Produce(ctx, kgo.StringRecord(fmt.Sprint("v", i)), func(_ *kgo.Record, err error) { must(err) })
	}
	must(p.Flush(ctx))
	p.Close()
	c := client(append(login, kgo.ConsumerGroup(topic), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	defer c.Close()
	n := 0
	for n < 100 {
		f := c.PollFetches(ctx)
		must(f.Err())
		f.EachRecord(func(r *kgo.Record) {
			want(string(r.Value) == fmt.Sprint("v", n), "record %d is %s", n, r.Value)
			n++
		})
	}
}
