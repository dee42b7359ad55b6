import type { Credentials, Endpoint, TlsMaterial } from '../../pkg/kube/client/endpoint.ts';

/** An endpoint whose credentials never change. */
export function fixedEndpoint(
  url: string,
  credentials: { headers?: Record<string, string>; tls?: TlsMaterial },
): Endpoint {
  const fixed: Credentials = { headers: credentials.headers ?? {}, connection: { tls: credentials.tls ?? {} } };
  return {
    url: url.replace(/\/+$/, ''),
    namespace: undefined,
    credentials: () => Promise.resolve(fixed),
    refused: () => undefined,
  };
}
