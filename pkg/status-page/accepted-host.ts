import { isIP } from 'node:net';

/**
 * Whether the Host header names something that no stranger can make lead here: an address, this host, or a Service. A page of
 * another origin whose DNS name was pointed at this port could read what is shown otherwise.
 */
export function isAcceptedHost(host: string | undefined): boolean {
  const { name } = /^(?<name>\[[^\]]*\]|[^:]*)(?::\d+)?$/.exec(host?.toLowerCase() ?? '')?.groups ?? {};
  if (name === undefined || name === '') return false;
  if (isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0) return true;
  return !name.includes('.') || /\.(?:localhost|svc|svc\.cluster\.local)$/.test(name);
}

/** Whether it is a person who opens the page, or the page itself: `site` is the header Sec-Fetch-Site. */
export function isOwnRequest(site: string | string[] | undefined): boolean {
  return site === undefined || site === 'none' || site === 'same-origin';
}
