# SPDX-License-Identifier: Apache-2.0

# A Leader that invites a Partner to a group, and leads it through a task: see docs/groups.md.
import json, ssl, uuid, urllib.request
import pika

LEADER, PARTNER = "10001000011K94ZH3VDXLP4S5EB63614", "10001000011K912345E789ABCDEF2353"
group, task = "trip-1", "task-" + uuid.uuid4().hex
exchange = f"group_{LEADER}_{group}"

# The group: an exchange, and a queue of the Leader's own.
mq = pika.BlockingConnection(pika.URLParameters("amqp://leader:leader-secret@localhost:5672/groups")).channel()
mq.exchange_declare(exchange, "fanout", durable=True, auto_delete=True)
mq.queue_declare(f"{exchange}_{LEADER}", durable=True)
mq.queue_bind(f"{exchange}_{LEADER}", exchange)

# The invitation.
tls = ssl.create_default_context(cafile=".pki/ca.pem")
tls.load_cert_chain(".pki/leader.pem", ".pki/leader-key.pem")
invitation = {"protocol": "rabbitmq:4.0",
    "group": {"groupId": group, "leader": {"aic": LEADER}, "partners": [{"aic": PARTNER}]},
    "server": {"host": "localhost", "port": 5672, "vhost": "groups", "accessToken": "partner:partner-secret"},
    "amqp": {"exchange": exchange, "exchangeType": "fanout", "routingKey": ""}}
call = {"jsonrpc": "2.0", "id": "1", "method": "group", "params": invitation}
print(urllib.request.urlopen("https://localhost:8443/group", json.dumps(call).encode(), context=tls).read().decode())

def publish(**message):
    message |= {"id": "msg-" + uuid.uuid4().hex, "senderRole": "leader", "senderId": LEADER, "groupId": group}
    mq.basic_publish(exchange, "", json.dumps(message), pika.BasicProperties("application/json", delivery_mode=2))

# A task: the Partner's answers come from the queue.
publish(type="message", command="start", taskId=task, dataItems=[{"type": "text", "text": "hello"}])
for _, _, body in mq.consume(f"{exchange}_{LEADER}", auto_ack=True):
    message = json.loads(body)
    if message["type"] == "task" and message["id"] == task:
        print(message["senderId"], message["status"]["state"], json.dumps(message["products"]))
        if message["status"]["state"] == "awaiting-completion":
            publish(type="message", command="complete", taskId=task, mentions=[message["senderId"]])
        if message["status"]["state"] in ("completed", "rejected", "failed", "canceled"):
            publish(type="group-mgmt-message", groupMgmtCommand="leave-group", mentions=[PARTNER])
    if message["type"] == "group-mgmt-message" and message["senderId"] == PARTNER:
        print(message["senderId"], json.dumps(message["groupMemberStatus"]))
        break
