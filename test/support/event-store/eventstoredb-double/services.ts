import gossipService from '@eventstore/db-client/generated/gossip_grpc_pb.js';
import gossip from '@eventstore/db-client/generated/gossip_pb.js';
import groupService from '@eventstore/db-client/generated/persistent_grpc_pb.js';
import persistent from '@eventstore/db-client/generated/persistent_pb.js';
import featureService from '@eventstore/db-client/generated/serverfeatures_grpc_pb.js';
import shared from '@eventstore/db-client/generated/shared_pb.js';
import streamService from '@eventstore/db-client/generated/streams_grpc_pb.js';
import type streams from '@eventstore/db-client/generated/streams_pb.js';
import {
  Metadata,
  Server,
  type ServerDuplexStream,
  type ServerUnaryCall,
  type ServerWritableStream,
  type ServiceError,
  type sendUnaryData,
} from '@grpc/grpc-js';
import type { ReadContext } from './all-subscription.ts';
import { notLeader, type SubscriptionCall } from './answers.ts';
import type { Groups } from './groups.ts';
import { read } from './reads.ts';
import { supportedMethods } from './server-features.ts';
import { type AppendFault, batchAppend, tombstone } from './writes.ts';

/** Calls that can be refused: to read a group's settings, to join it, and to ask what the server supports. */
export type RefusedCall = 'info' | 'join' | 'features';

export interface Backend extends ReadContext {
  readonly groups: Groups;
  readonly nextFault: () => AppendFault | undefined;
  /** The error with which the call is refused, if any. */
  readonly nextRefusal: (call: RefusedCall) => ServiceError | undefined;
  /** The port of the leader that this node follows; `undefined` if it leads. */
  readonly leaderPort: () => number | undefined;
  /** The address that the node reports. */
  readonly port: () => number;
}

const MAX_MESSAGE_BYTES = 17 * 1024 * 1024;

/** The gRPC server with the services that the client calls. */
export function createGrpcServer(backend: Backend): Server {
  const { log, nextFault, nextRefusal, port } = backend;
  const server = new Server({ 'grpc.max_receive_message_length': MAX_MESSAGE_BYTES });
  const writes = { log, nextFault };
  server.addService(streamService.StreamsService, {
    read: streaming(async (call: ServerWritableStream<streams.ReadReq, streams.ReadResp>) => {
      const leader = backend.leaderPort();
      if (leader !== undefined && call.metadata.get('requires-leader').includes('true'))
        throw notLeader(leader);
      await read(backend, call);
    }),
    batchAppend: streaming((call: ServerDuplexStream<streams.BatchAppendReq, streams.BatchAppendResp>) =>
      batchAppend(writes, call),
    ),
    tombstone: unary((request: streams.TombstoneReq) => tombstone(log, request)),
  });
  addGroupService(server, backend);
  server.addService(featureService.ServerFeaturesService, {
    getSupportedMethods: unary(async (_, call) => {
      const refusal = nextRefusal('features');
      if (refusal !== undefined) throw refusal;
      const head = new Metadata();
      head.set('date', new Date().toUTCString());
      call.sendMetadata(head);
      return supportedMethods(log.server.version);
    }),
  });
  server.addService(gossipService.GossipService, { read: unary(async () => cluster(port())) });
  return server;
}

function addGroupService(server: Server, { groups, nextRefusal }: Backend): void {
  server.addService(groupService.PersistentSubscriptionsService, {
    create: unary(async (request: persistent.CreateReq) => {
      await groups.create(request.getOptions());
      return new persistent.CreateResp();
    }),
    update: unary(async (request: persistent.UpdateReq) => {
      await groups.update(request.getOptions());
      return new persistent.UpdateResp();
    }),
    delete: unary(async (request: persistent.DeleteReq) => {
      await groups.delete(request.getOptions());
      return new persistent.DeleteResp();
    }),
    replayParked: unary(async (request: persistent.ReplayParkedReq) => {
      await groups.replayParked(request.getOptions());
      return new persistent.ReplayParkedResp();
    }),
    getInfo: unary(async (request: persistent.GetInfoReq) => {
      const refusal = nextRefusal('info');
      if (refusal !== undefined) throw refusal;
      return new persistent.GetInfoResp().setSubscriptionInfo(groups.info(request.getOptions()));
    }),
    read: (call: SubscriptionCall) => {
      const refusal = nextRefusal('join');
      if (refusal === undefined) groups.read(call);
      else call.emit('error', refusal);
    },
  });
}

/** A cluster of one node, led by this one. */
function cluster(port: number): gossip.ClusterInfo {
  const endPoint = new gossip.EndPoint().setAddress('127.0.0.1').setPort(port);
  const member = new gossip.MemberInfo()
    .setInstanceId(new shared.UUID().setString(crypto.randomUUID()))
    .setState(gossip.MemberInfo.VNodeState.LEADER)
    .setIsAlive(true)
    .setHttpEndPoint(endPoint);
  return new gossip.ClusterInfo().setMembersList([member]);
}

function unary<Request, Response>(
  handle: (request: Request, call: ServerUnaryCall<Request, Response>) => Promise<Response>,
): (call: ServerUnaryCall<Request, Response>, answer: sendUnaryData<Response>) => void {
  return (call, answer) => {
    handle(call.request, call).then((response) => answer(null, response), answer);
  };
}

function streaming<Call extends { end(): void; emit(event: 'error', error: unknown): boolean }>(
  handle: (call: Call) => Promise<void>,
): (call: Call) => void {
  return (call) => {
    handle(call).then(
      () => call.end(),
      (error: unknown) => call.emit('error', error),
    );
  };
}
