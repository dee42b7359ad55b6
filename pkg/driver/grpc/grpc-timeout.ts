/** A deadline as gRPC carries it: at most eight digits and a unit. */
export function toGrpcTimeout(ms: number): string {
  return ms < 1e8 ? `${Math.ceil(ms)}m` : `${Math.min(Math.ceil(ms / 1000), 99_999_999)}S`;
}
