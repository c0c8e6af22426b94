package main

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"strconv"
	"strings"

	"github.com/IBM/sarama"
)

// scramClient is the client's side of SCRAM (RFC 5802), which sarama leaves to its users.
type scramClient struct {
	mechanism      sarama.SASLMechanism
	user, password string
	first, nonce   string
	signature      []byte
	step           int
}

func (s *scramClient) hash() hash.Hash {
	if s.mechanism == sarama.SASLTypeSCRAMSHA256 {
		return sha256.New()
	}
	return sha512.New()
}

func (s *scramClient) Begin(user, password, _ string) error {
	random := make([]byte, 18)
	if _, err := rand.Read(random); err != nil {
		return err
	}
	s.user = strings.NewReplacer("=", "=3D", ",", "=2C").Replace(user)
	s.password, s.nonce = password, base64.RawStdEncoding.EncodeToString(random)
	s.first = "n=" + s.user + ",r=" + s.nonce
	return nil
}

func (s *scramClient) Step(challenge string) (string, error) {
	s.step++
	switch s.step {
	case 1:
		return "n,," + s.first, nil
	case 2:
		return s.final(challenge)
	}
	verifier, _ := strings.CutPrefix(challenge, "v=")
	if got, err := base64.StdEncoding.DecodeString(verifier); err != nil || !hmac.Equal(got, s.signature) {
		return "", errors.New("the broker does not know the password: " + challenge)
	}
	return "", nil
}

func (s *scramClient) final(challenge string) (string, error) {
	parts := strings.SplitN(challenge, ",", 3)
	if len(parts) != 3 || !strings.HasPrefix(parts[0], "r="+s.nonce) {
		return "", errors.New("not an answer of SCRAM: " + challenge)
	}
	salt, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(parts[1], "s="))
	if err != nil {
		return "", err
	}
	iterations, err := strconv.Atoi(strings.TrimPrefix(parts[2], "i="))
	if err != nil {
		return "", err
	}
	salted, err := pbkdf2.Key(s.hash, s.password, salt, iterations, s.hash().Size())
	if err != nil {
		return "", err
	}
	clientKey := s.mac(salted, "Client Key")
	stored := s.hash()
	stored.Write(clientKey)
	bare := "c=biws," + parts[0]
	message := s.first + "," + challenge + "," + bare
	proof := s.mac(stored.Sum(nil), message)
	for i := range proof {
		proof[i] ^= clientKey[i]
	}
	s.signature = s.mac(s.mac(salted, "Server Key"), message)
	return fmt.Sprintf("%s,p=%s", bare, base64.StdEncoding.EncodeToString(proof)), nil
}

func (s *scramClient) mac(key []byte, text string) []byte {
	m := hmac.New(s.hash, key)
	m.Write([]byte(text))
	return m.Sum(nil)
}

func (s *scramClient) Done() bool { return s.step >= 3 }
