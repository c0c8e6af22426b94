// Logins with @platformatic/kafka: every mechanism over TLS, and a certificate; each writes and reads as the user who has the rights.
// usage: SECURE=SETTINGS.json node secure.mjs   exit status 0 when every step holds
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { Admin, Consumer, Producer, stringDeserializers, stringSerializers } from '@platformatic/kafka'

const given = JSON.parse(readFileSync(process.env.SECURE))
const ca = [readFileSync(given.authority)]
const login = { username: given.user, password: given.password }
const replicas = 1

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

function settings (more) {
  return { clientId: 'secure', bootstrapBrokers: [given.sasl_ssl], tls: { ca }, retries: 1, ...more }
}

async function roundTrip (base, topic) {
  const admin = new Admin(base)
  await admin.createTopics({ topics: [topic], partitions: 1, replicas })
  await admin.close()
  const wanted = [...Array(100).keys()].map(n => `v${n}`)
  const producer = new Producer({ ...base, idempotent: true, serializers: stringSerializers })
  await producer.send({ messages: wanted.map(value => ({ topic, key: 'k', value })), acks: -1 })
  await producer.close()
  const consumer = new Consumer({ ...base, groupId: topic, deserializers: stringDeserializers })
  const stream = await consumer.consume({ topics: [topic], mode: 'committed', fallbackMode: 'earliest', autocommit: false, maxWaitTime: 500 })
  const got = []
  for await (const message of stream) {
    got.push(message.value)
    if (got.length === wanted.length) {
      await message.commit()
      break
    }
  }
  await stream.close().catch(() => {})
  await consumer.close(true)
  assert.deepEqual(got, wanted)
}

setTimeout(() => { console.log('FAIL: too slow'); process.exit(1) }, 120000).unref()
const mechanisms = { 'SCRAM-SHA-512': login, 'SCRAM-SHA-256': login, PLAIN: login, OAUTHBEARER: { token: given.token } }
const run = Date.now()
for (const [mechanism, more] of Object.entries(mechanisms)) {
  await step(`${mechanism} over TLS`, () => roundTrip(settings({ sasl: { mechanism, ...more } }), `platformatic-${mechanism}-${run}`))
}
await step('a certificate', () => {
  const tls = { ca, key: readFileSync(given.key), cert: readFileSync(given.certificate) }
  return roundTrip(settings({ bootstrapBrokers: [given.ssl], tls }), `platformatic-certificate-${run}`)
})
await step('a wrong password is refused', async () => {
  for (const mechanism of ['SCRAM-SHA-512', 'PLAIN']) {
    const admin = new Admin(settings({ sasl: { mechanism, ...login, password: 'wrong' } }))
    await assert.rejects(admin.metadata({ topics: [], forceUpdate: true }), error => /[Aa]uthentication/.test(said(error)))
    await admin.close()
  }
})
function said (error) {
  return [error, ...(error.errors ?? []), error.cause].filter(Boolean).map(each => each === error ? each.message : said(each)).join(' ')
}
await step('a broker that nobody vouches for', async () => {
  const admin = new Admin(settings({ tls: {}, sasl: { mechanism: 'PLAIN', ...login } }))
  await assert.rejects(admin.metadata({ topics: [], forceUpdate: true }))
  await admin.close()
})
console.log('platformatic-kafka secure: ok')
process.exit(0)
