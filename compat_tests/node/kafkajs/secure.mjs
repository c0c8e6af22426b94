// Logins with kafkajs: every mechanism over TLS, and a certificate; each writes and reads as the user who has the rights.
// usage: SECURE=SETTINGS.json node secure.mjs   exit status 0 when every step holds
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import kafkajs from 'kafkajs'

const { Kafka, logLevel } = kafkajs
const given = JSON.parse(readFileSync(process.env.SECURE))
const ca = [readFileSync(given.authority)]
const login = { username: given.user, password: given.password }

async function step (name, fn) {
  const start = performance.now()
  try {
    await fn()
  } catch (error) {
    console.log(`FAIL ${name}:`, error)
    process.exit(1)
  }
  console.log(`ok ${name.padEnd(36)} ${(performance.now() - start).toFixed(0).padStart(6)} ms`)
}

function client (settings) {
  return new Kafka({ clientId: 'secure', brokers: [given.sasl_ssl], ssl: { ca }, logLevel: logLevel.NOTHING, retry: { retries: 3 }, ...settings })
}

async function roundTrip (kafka, topic) {
  const admin = kafka.admin()
  await admin.connect()
  await admin.createTopics({ waitForLeaders: true, topics: [{ topic, numPartitions: 1 }] })
  await admin.disconnect()
  const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1 })
  await producer.connect()
  await producer.send({ topic, acks: -1, messages: [...Array(100).keys()].map(n => ({ key: `k${n}`, value: `v${n}` })) })
  await producer.disconnect()
  const consumer = kafka.consumer({ groupId: topic })
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  const got = []
  await new Promise((resolve, reject) => {
    setTimeout(() => reject(new Error(`${got.length} records of 100 in time`)), 60000).unref()
    consumer.run({
      eachMessage: async ({ message }) => {
        got.push(message.value.toString())
        if (got.length === 100) resolve()
      }
    }).catch(reject)
  })
  await consumer.disconnect()
  assert.deepEqual(got, [...Array(100).keys()].map(n => `v${n}`))
}

setTimeout(() => { console.log('FAIL: too slow'); process.exit(1) }, 120000).unref()
const mechanisms = {
  'scram-sha-512': login,
  'scram-sha-256': login,
  plain: login,
  oauthbearer: { oauthBearerProvider: async () => ({ value: given.token }) }
}
const run = Date.now()
for (const [mechanism, settings] of Object.entries(mechanisms)) {
  await step(`${mechanism} over TLS`, () => roundTrip(client({ sasl: { mechanism, ...settings } }), `kafkajs-${mechanism}-${run}`))
}
await step('a certificate', () => {
  const ssl = { ca, key: readFileSync(given.key), cert: readFileSync(given.certificate) }
  return roundTrip(client({ brokers: [given.ssl], ssl }), `kafkajs-certificate-${run}`)
})
await step('a wrong password is refused', async () => {
  for (const mechanism of ['scram-sha-512', 'plain']) {
    const admin = client({ sasl: { mechanism, ...login, password: 'wrong' } }).admin()
    await assert.rejects(admin.connect(), { name: 'KafkaJSSASLAuthenticationError' })
    await admin.disconnect()
  }
})
await step('a broker that nobody vouches for', async () => {
  const admin = client({ ssl: true, sasl: { mechanism: 'plain', ...login } }).admin()
  await assert.rejects(admin.connect(), /certificate/)
  await admin.disconnect()
})
console.log('kafkajs secure: ok')
process.exit(0)
