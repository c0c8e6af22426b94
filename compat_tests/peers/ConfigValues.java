import java.util.*;
import org.apache.kafka.common.config.*;
import com.fasterxml.jackson.databind.*;
public class ConfigValues {
  static ObjectMapper M = new ObjectMapper();
  static void probe(String scope, ConfigDef def) throws Exception {
    for (var e : new TreeMap<>(def.configKeys()).entrySet()) {
      var k = e.getValue();
      ConfigDef one = new ConfigDef().define(k);
      LinkedHashSet<String> vs = new LinkedHashSet<>();
      vs.addAll(List.of("", " ", "abc", "0", "1", "-1", " 5 ", "-2", "-3", "1.5", "true", "a,b", " a , b ", "a,a", ",", "a,,b", "*", "+7", "007"));
      switch (k.type()) {
        case INT: vs.addAll(List.of("2147483647","2147483648","-2147483648","-2147483649","9","10","17","18","22","23","1e3","0x10","1_000")); break;
        case SHORT: vs.addAll(List.of("32767","32768","-32768")); break;
        case LONG: vs.addAll(List.of("9223372036854775807","9223372036854775808","-9223372036854775808","2147483648","10L")); break;
        case DOUBLE: vs.addAll(List.of("0.5","0.2","1.01","NaN","Infinity","1e3","1d","1.7976931348623157E308","1e400","-0.0","100","1234567.0","12345678.9","0.001","0.0001","1e-5","123456789012","5.0E-324","0x1p3",".5","1.")); break;
        case BOOLEAN: vs.addAll(List.of("TRUE","False"," true ","yes","false")); break;
        case LIST: vs.addAll(List.of("compact","delete","compact,delete","delete,compact","compact,compact","broker","controller,broker","classic","classic,consumer","consumer,classic,share,streams","0:1","0:1,1:2","none",":","0","0:1,x","PLAINTEXT://h:1", "interval.ms", "client_id=x", "client_id=[", "client_source_port=1", "bogus=1", "org.apache.kafka.consumer.")); break;
        default: vs.addAll(List.of("CreateTime","LogAppendTime","createtime","zstd","gzip","ZSTD","uncompressed","producer","none","snappy","lz4","required","requested","earliest","latest","by_duration:PT1H","by_duration:-PT1H","by_duration:1h","by_duration:P1D","none","read_committed","READ_COMMITTED","BIDIRECTIONAL","bidirectional","Upgrade","RS256","es256","SASL_SSL","sasl_ssl","INFO","DEBUG","PLAINTEXT:PLAINTEXT","A:PLAINTEXT,B:SSL","A:FOO","A:PLAINTEXT,A:SSL","127.0.0.1:5","h:x","sticky","__dlq","dlq.x","a b"));
      }
      // the bounds
      String v = k.validator == null ? "" : k.validator.toString();
      java.util.regex.Matcher m = java.util.regex.Pattern.compile("-?\\d+(\\.\\d+)?").matcher(v);
      while (m.find()) { String s = m.group(); vs.add(s); try { long l = Long.parseLong(s); if (l > Long.MIN_VALUE) vs.add("" + (l-1)); if (l < Long.MAX_VALUE) vs.add("" + (l+1)); } catch (NumberFormatException x) {} }
      for (String s : vs) {
        var o = new LinkedHashMap<String,Object>();
        o.put("scope", scope); o.put("name", k.name); o.put("value", s);
        try {
          // As a broker does it: what a list has twice is dropped before it is validated.
          Object p = one.parse(Map.of(k.name, s)).get(k.name);
          o.put("parsed", p instanceof org.apache.kafka.common.config.types.Password ? ((org.apache.kafka.common.config.types.Password)p).value() : ConfigDef.convertToString(p, k.type()));
        } catch (ConfigException x) { o.put("error", x.getMessage()); }
        catch (Throwable x) { o.put("other", x.toString()); }
        System.out.println(M.writeValueAsString(o));
      }
      if (k.hasDefault()) try { if (k.validator != null) k.validator.ensureValid(k.name, k.defaultValue); } catch (Exception x) { System.err.println("default invalid " + x); }
    }
  }
  public static void main(String[] a) throws Exception {
    probe("broker", kafka.server.KafkaConfig.configDef());
    probe("topic", org.apache.kafka.storage.internals.log.LogConfig.configDefCopy());
    probe("group", org.apache.kafka.coordinator.group.GroupConfig.CONFIG_DEF);
    probe("quota-broker", org.apache.kafka.server.config.QuotaConfig.brokerQuotaConfigs());
    for (String[] c : new String[][]{{"client-metrics","org.apache.kafka.server.metrics.ClientMetricsConfigs","configDef"},{"quota-user","org.apache.kafka.server.config.QuotaConfig","userAndClientQuotaConfigs"},{"quota-ip","org.apache.kafka.server.config.QuotaConfig","ipConfigs"}}) {
      try { var m = Class.forName(c[1]).getMethod(c[2]); Object d = m.invoke(null); probe(c[0], (ConfigDef) d); } catch (Throwable t) { System.err.println(c[1]+"."+c[2]+": " + t); }
    }
  }
}
