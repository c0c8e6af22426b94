// Logins: every mechanism over TLS, and a certificate; each writes and reads as the user who has the rights.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/IBM/sarama"
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

// tokens is what sarama asks for tokens: always the same one.
type tokens string

func (t tokens) Token() (*sarama.AccessToken, error) {
	return &sarama.AccessToken{Token: string(t)}, nil
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
	over := func(tlsConfig *tls.Config) *sarama.Config {
		c := config()
		c.Net.TLS.Enable = true
		c.Net.TLS.Config = tlsConfig
		return c
	}
	by := func(mechanism sarama.SASLMechanism, password string) *sarama.Config {
		c := over(&tls.Config{RootCAs: pool})
		c.Net.SASL.Enable = true
		c.Net.SASL.Mechanism = mechanism
		c.Net.SASL.User, c.Net.SASL.Password = given.User, password
		c.Net.SASL.TokenProvider = tokens(given.Token)
		c.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &scramClient{mechanism: mechanism} }
		return c
	}
	for _, mechanism := range []sarama.SASLMechanism{
		sarama.SASLTypeSCRAMSHA512, sarama.SASLTypeSCRAMSHA256, sarama.SASLTypePlaintext, sarama.SASLTypeOAuth,
	} {
		step(string(mechanism)+" over TLS", func() { roundTrip(string(mechanism), given.SaslSsl, by(mechanism, given.Password)) })
	}
	step("a certificate", func() {
		pair, err := tls.LoadX509KeyPair(given.Certificate, given.Key)
		must(err)
		roundTrip("certificate", given.Ssl, over(&tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}))
	})
	step("a wrong password is refused", func() {
		for _, mechanism := range []sarama.SASLMechanism{sarama.SASLTypeSCRAMSHA512, sarama.SASLTypePlaintext} {
			err := refusal(given.SaslSsl, by(mechanism, "wrong"))
			want(errors.Is(err, sarama.ErrSASLAuthenticationFailed), "%s: %v", mechanism, err)
		}
	})
	step("a broker that nobody vouches for", func() {
		c := by(sarama.SASLTypePlaintext, given.Password)
		c.Net.TLS.Config = &tls.Config{}
		err := refusal(given.SaslSsl, c)
		var unknown x509.UnknownAuthorityError
		want(errors.As(err, &unknown), "%v", err)
	})
}

func refusal(address string, c *sarama.Config) error {
	broker := sarama.NewBroker(address)
	must(broker.Open(c))
	defer broker.Close()
	_, err := broker.Connected()
	return err
}

func roundTrip(name, seed string, c *sarama.Config) {
	seeds = []string{seed}
	topic := run + "-" + name
	adm, err := sarama.NewClusterAdmin(seeds, c)
	must(err)
	defer adm.Close()
	must(adm.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: -1}, false))
	p, err := sarama.NewSyncProducer(seeds, c)
	must(err)
	var batch []*sarama.ProducerMessage
	for i := range 100 {
		batch = append(batch, &sarama.ProducerMessage{Topic: topic, Key: sarama.StringEncoder(fmt.Sprint("k", i)), Value: sarama.StringEncoder(fmt.Sprint("v", i))})
	}
	must(p.SendMessages(batch))
	must(p.Close())
	for k, v := range consume(topic, 100, c) {
		want(v == "v"+k[1:], "%s holds %s", k, v)
	}
}
