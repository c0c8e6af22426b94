// What users of two clients of a schema registry do: register, encode, decode, compare. Ends with status 1 at the first step that does not hold.
import assert from "node:assert";
import { SchemaRegistry, SchemaType } from "@kafkajs/confluent-schema-registry";
import {
  AvroDeserializer,
  AvroSerializer,
  JsonDeserializer,
  JsonSerializer,
  SchemaRegistryClient,
  SerdeType,
} from "@confluentinc/schemaregistry";

const url = process.argv[2];
const avro = JSON.stringify({
  type: "record",
  name: "Order",
  namespace: "shop",
  fields: [{ name: "id", type: "long" }],
});
const wider = JSON.stringify({
  type: "record",
  name: "Order",
  namespace: "shop",
  fields: [
    { name: "id", type: "long" },
    { name: "note", type: "string" },
  ],
});
const json = JSON.stringify({
  title: "Person",
  type: "object",
  properties: { name: { type: "string" } },
  required: ["name"],
});

async function step(name, work) {
  await work();
  console.log(`ok ${name}`);
}

await step("kafkajs: Avro", async () => {
  const registry = new SchemaRegistry({ host: url });
  const { id } = await registry.register({ type: SchemaType.AVRO, schema: avro }, { subject: "js-orders-value" });
  const data = await registry.encode(id, { id: 7 });
  assert.deepEqual({ ...(await registry.decode(data)) }, { id: 7 });
  assert.equal(await registry.getLatestSchemaId("js-orders-value"), id);
  await assert.rejects(
    registry.register({ type: SchemaType.AVRO, schema: wider }, { subject: "js-orders-value" }),
    /incompatible/i,
  );
});

await step("kafkajs: JSON and Protobuf", async () => {
  const registry = new SchemaRegistry({ host: url });
  const person = await registry.register({ type: SchemaType.JSON, schema: json }, { subject: "js-people-value" });
  assert.deepEqual(await registry.decode(await registry.encode(person.id, { name: "Ada" })), { name: "Ada" });
  const proto = 'syntax = "proto3"; package shop; message Item { string name = 1; }';
  const item = await registry.register({ type: SchemaType.PROTOBUF, schema: proto }, { subject: "js-items-value" });
  const decoded = await registry.decode(await registry.encode(item.id, { name: "pen" }));
  assert.equal(decoded.name, "pen");
});

await step("confluentinc: Avro and JSON", async () => {
  const client = new SchemaRegistryClient({ baseURLs: [url] });
  const id = await client.register("sr-orders-value", { schemaType: "AVRO", schema: avro });
  const config = { useLatestVersion: true };
  const writes = new AvroSerializer(client, SerdeType.VALUE, config);
  const data = await writes.serialize("sr-orders", { id: 9 });
  assert.equal(data.readInt32BE(1), id);
  const reads = new AvroDeserializer(client, SerdeType.VALUE, {});
  assert.deepEqual({ ...(await reads.deserialize("sr-orders", data)) }, { id: 9 });
  await client.register("sr-people-value", { schemaType: "JSON", schema: json });
  const person = await new JsonSerializer(client, SerdeType.VALUE, config).serialize("sr-people", { name: "Ada" });
  assert.deepEqual(await new JsonDeserializer(client, SerdeType.VALUE, {}).deserialize("sr-people", person), {
    name: "Ada",
  });
});

await step("confluentinc: subjects, versions, compatibility", async () => {
  const client = new SchemaRegistryClient({ baseURLs: [url] });
  assert.ok((await client.getAllSubjects()).includes("sr-orders-value"));
  assert.deepEqual(await client.getAllVersions("sr-orders-value"), [1]);
  const latest = await client.getLatestSchemaMetadata("sr-orders-value");
  assert.equal(latest.version, 1);
  assert.equal((await client.getByGuid(latest.guid)).schema, latest.schema);
  assert.equal(await client.testSubjectCompatibility("sr-orders-value", { schemaType: "AVRO", schema: wider }), false);
  await client.updateCompatibility("sr-orders-value", "NONE");
  assert.equal(await client.getCompatibility("sr-orders-value"), "NONE");
  await client.register("sr-orders-value", { schemaType: "AVRO", schema: wider });
  assert.equal(await client.getVersion("sr-orders-value", { schemaType: "AVRO", schema: wider }, false), 2);
  assert.deepEqual(await client.deleteSubject("sr-orders-value"), [1, 2]);
  assert.deepEqual(await client.deleteSubject("sr-orders-value", true), [1, 2]);
});
process.exit(0);
