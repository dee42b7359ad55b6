# Six images: the manager (the last one, which is built by default) and the drivers of OpenStack (--target openstack-driver), of Cluster
# API (--target cluster-api-driver), of IronCore (--target ironcore-driver), of the simulated cloud (--target sim-driver) and of kwok
# (--target kwok-driver). Each holds its programs as a bundle, without packages around it, on a distroless Node: no shell, uid 65532, works
# with a read-only root file system.
FROM node:24-bookworm-slim AS build
WORKDIR /src
COPY package.json package-lock.json .npmrc ./
COPY hack/node hack/node
RUN npm ci --no-audit --no-fund
COPY cmd cmd
COPY pkg pkg
COPY hack hack
COPY packages packages
COPY tsconfig.json tsconfig.json
COPY examples examples
COPY proto proto
RUN node hack/image/main.ts dist/manager machinist machine-controller-manager machine-controller
RUN node hack/image/main.ts dist/sim-driver sim-driver
RUN node hack/image/main.ts dist/kwok-driver kwok-driver
RUN node hack/image/main.ts dist/openstack-driver openstack-driver
RUN node hack/image/main.ts dist/cluster-api-driver cluster-api-driver
RUN node hack/image/main.ts dist/ironcore-driver ironcore-driver

FROM gcr.io/distroless/nodejs24-debian13:nonroot AS sim-driver
WORKDIR /app
COPY --from=build /src/dist/sim-driver ./
ENV NODE_OPTIONS="--max-semi-space-size=2 --max-old-space-size=192"
USER 65532:65532
ENTRYPOINT ["/nodejs/bin/node", "/app/cmd/sim-driver/main.js"]

FROM gcr.io/distroless/nodejs24-debian13:nonroot AS kwok-driver
WORKDIR /app
COPY --from=build /src/dist/kwok-driver ./
ENV NODE_OPTIONS="--max-semi-space-size=2 --max-old-space-size=192"
USER 65532:65532
ENTRYPOINT ["/nodejs/bin/node", "/app/cmd/kwok-driver/main.js"]

FROM gcr.io/distroless/nodejs24-debian13:nonroot AS openstack-driver
WORKDIR /app
COPY --from=build /src/dist/openstack-driver ./
ENV NODE_OPTIONS="--max-semi-space-size=2 --max-old-space-size=192"
USER 65532:65532
ENTRYPOINT ["/nodejs/bin/node", "/app/cmd/openstack-driver/main.js"]

FROM gcr.io/distroless/nodejs24-debian13:nonroot AS cluster-api-driver
WORKDIR /app
COPY --from=build /src/dist/cluster-api-driver ./
ENV NODE_OPTIONS="--max-semi-space-size=2 --max-old-space-size=192"
USER 65532:65532
ENTRYPOINT ["/nodejs/bin/node", "/app/cmd/cluster-api-driver/main.js"]

FROM gcr.io/distroless/nodejs24-debian13:nonroot AS ironcore-driver
WORKDIR /app
COPY --from=build /src/dist/ironcore-driver ./
ENV NODE_OPTIONS="--max-semi-space-size=2 --max-old-space-size=192"
USER 65532:65532
ENTRYPOINT ["/nodejs/bin/node", "/app/cmd/ironcore-driver/main.js"]

FROM gcr.io/distroless/nodejs24-debian13:nonroot AS manager
WORKDIR /app
COPY --from=build /src/dist/manager ./
# A small young generation: the default of this V8 holds on to 100 MB of it once hundreds of machines come at a time.
ENV NODE_OPTIONS="--max-semi-space-size=8"
USER 65532:65532
# Deployments of the original start ./machine-controller-manager or ./machine-controller: they are there too.
ENTRYPOINT ["/nodejs/bin/node", "/app/cmd/machinist/main.js"]
CMD ["run"]
