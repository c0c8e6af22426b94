package kwire;

import static kwire.Cases.equal;
import static kwire.Cases.fails;
import static kwire.Cases.fresh;
import static kwire.Cases.props;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.errors.SaslAuthenticationException;
import org.apache.kafka.common.errors.SslAuthenticationException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Logins: every mechanism over TLS, and a certificate; each writes and reads as the user who has the rights. */
public final class Secure {
    private static final String MODULES = "org.apache.kafka.common.security.";
    private static final int RECORDS = 100;
    private static Map<String, String> given;

    static Properties tls(String address) {
        return props("bootstrap.servers", address, "security.protocol", "SSL",
            "ssl.truststore.type", "PEM", "ssl.truststore.location", given.get("authority"));
    }

    static Properties login(String mechanism, String jaas) {
        Properties all = tls(given.get("sasl_ssl"));
        all.putAll(props("security.protocol", "SASL_SSL", "sasl.mechanism", mechanism, "sasl.jaas.config", MODULES + jaas));
        return all;
    }

    static Properties byPassword(String mechanism, String password) {
        String module = mechanism.equals("PLAIN") ? "plain.PlainLoginModule" : "scram.ScramLoginModule";
        return login(mechanism, module + " required username=\"" + given.get("user") + "\" password=\"" + password + "\";");
    }

    static Properties byToken() {
        String url = Path.of(given.get("token_file")).toUri().toString();
        System.setProperty("org.apache.kafka.sasl.oauthbearer.allowed.urls", url);
        System.setProperty("org.apache.kafka.sasl.oauthbearer.allowed.files", given.get("token_file"));
        Properties all = login("OAUTHBEARER", "oauthbearer.OAuthBearerLoginModule required;");
        all.putAll(props("sasl.oauthbearer.token.endpoint.url", url, "sasl.login.callback.handler.class", MODULES + "oauthbearer.OAuthBearerLoginCallbackHandler"));
        return all;
    }

    static Properties byCertificate() {
        Properties all = tls(given.get("ssl"));
        all.putAll(props("ssl.keystore.type", "PEM", "ssl.keystore.location", given.get("key_and_certificate")));
        return all;
    }

    static void roundTrip(Properties login) throws Exception {
        String topic = fresh("secure");
        try (var admin = Admin.create(login)) {
            admin.createTopics(List.of(new NewTopic(topic, Optional.of(1), Optional.empty()))).all().get();
        }
        Properties writing = new Properties();
        writing.putAll(login);
        writing.put("acks", "all");
        try (var producer = new KafkaProducer<>(writing, new StringSerializer(), new StringSerializer())) {
            for (int i = 0; i < RECORDS; i++) producer.send(new ProducerRecord<>(topic, "v" + i));
            producer.flush();
        }
        Properties reading = new Properties();
        reading.putAll(login);
        reading.putAll(props("group.id", topic, "auto.offset.reset", "earliest"));
        List<String> got = new ArrayList<>();
        try (var consumer = new KafkaConsumer<>(reading, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(topic));
            long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
            while (got.size() < RECORDS && System.nanoTime() < end) consumer.poll(Duration.ofMillis(300)).forEach(r -> got.add(r.value()));
        }
        List<String> wanted = new ArrayList<>();
        for (int i = 0; i < RECORDS; i++) wanted.add("v" + i);
        equal(got, wanted, "records");
    }

    static void ask(Properties login) throws Exception {
        login.put("default.api.timeout.ms", "10000");
        login.put("request.timeout.ms", "5000");
        try (var admin = Admin.create(login)) {
            admin.describeCluster().clusterId().get();
        }
    }

    public static void main(String[] args) throws Exception {
        given = new com.fasterxml.jackson.databind.ObjectMapper()
            .readValue(Path.of(System.getenv("SECURE")).toFile(), new com.fasterxml.jackson.core.type.TypeReference<Map<String, String>>() { });
        String password = given.get("password");
        Cases cases = new Cases("java-secure");
        for (String mechanism : List.of("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"))
            cases.add(mechanism.toLowerCase().replace('-', '_'), () -> roundTrip(byPassword(mechanism, password)));
        cases.add("oauthbearer", () -> roundTrip(byToken()));
        cases.add("certificate", () -> roundTrip(byCertificate()));
        cases.add("wrong_password_is_refused", () -> {
            for (String mechanism : List.of("SCRAM-SHA-512", "PLAIN"))
                fails(SaslAuthenticationException.class, () -> ask(byPassword(mechanism, "wrong")));
        });
        cases.add("broker_that_nobody_vouches_for", () -> {
            Properties login = byPassword("PLAIN", password);
            login.remove("ssl.truststore.type");
            login.remove("ssl.truststore.location");
            fails(SslAuthenticationException.class, () -> ask(login));
        });
        cases.run(args);
    }
}
