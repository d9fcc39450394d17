import json, socket


def raw(stack, body, path, token):
    connection = socket.create_connection(("127.0.0.1", stack.port), timeout=20)
    data = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nhost: g\r\ncontent-type: application/json\r\n"
        f"authorization: Bearer {token}\r\ncontent-length: {len(data)}\r\n\r\n"
    )
    connection.sendall(head.encode() + data)
    return connection
